import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { missingPageHtml, pageHtml } from '../src/layout.ts'
import { markdownUrl, siteLink } from '../src/links.ts'
import { render } from '../src/markdown.ts'
import { readSite } from '../src/pages.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { pages, llms } = readSite()
const assets = {
  style: '/docs/assets/s.css',
  script: '/docs/assets/s.js',
  scheme: '/docs/assets/c.js',
  search: '/docs/assets/i.json',
  icon: '/docs/assets/i.svg',
  font: '/docs/assets/f.woff2',
}
const html = new Map(pages.map((page) => [page.url, pageHtml(page, pages, assets)]))
const MAX_PAGE_BYTES = 150_000

const idsOf = (text: string): string[] => [...text.matchAll(/ id="([^"]*)"/g)].map(([, id = '']) => id)
const hrefsOf = (text: string): string[] => [...text.matchAll(/ href="([^"]*)"/g)].map(([, href = '']) => href)
const isOurs = (href: string): boolean => href.startsWith('#') || href.startsWith('/docs')

describe('C89: the documentation site', () => {
  test('C89: every Markdown file below docs/ is a page, once', () => {
    const files = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
    const paths = pages.map(({ path }) => path)
    expect(files.filter((name) => !paths.includes(`docs/${name}`))).toEqual([])
    expect(new Set(pages.map(({ url }) => url)).size).toBe(pages.length)
  })

  test('C89: every link to a page or a heading of the site leads somewhere', () => {
    const broken = [...html].flatMap(([from, text]) =>
      hrefsOf(text)
        .filter((href) => isOurs(href) && !href.startsWith('/docs/assets/'))
        .filter((href) => {
          const [path = '', id] = href.split('#')
          const isMarkdown = pages.some(({ url }) => markdownUrl(url) === path)
          const target = html.get(path === '' ? from : path)
          return !isMarkdown && (target === undefined || (id !== undefined && !idsOf(target).includes(decodeURIComponent(id))))
        })
        .map((href) => `${from} → ${href}`),
    )
    expect(broken).toEqual([])
    expect([...html.values()].flatMap(hrefsOf).length).toBeGreaterThan(1000)
  })

  test('C89: links of the Markdown copies and of llms.txt lead to Markdown', () => {
    const known = [...pages.map(({ url }) => markdownUrl(url)), '/openapi.json']
    const texts = [...pages.map(({ path, markdown }) => ({ path, text: markdown })), { path: 'llms.txt', text: llms }]
    const broken = texts.flatMap(({ path, text }) =>
      [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/\]\(([^()\s]+)\)/g)]
        .map(([, href = '']) => href.split('#')[0] ?? '')
        .filter((href) => href !== '' && !/^(https:|mailto:)/.test(href) && !known.includes(href))
        .map((href) => `${path} → ${href}`),
    )
    expect(broken).toEqual([])
    expect(llms).toContain('(/docs/quickstart.md)')
  })

  test('C89: a page has one h1, its own title and description, and ids that occur once', () => {
    const titles = [...html.values()].map((text) => /<title>([^<]+)<\/title>/.exec(text)?.[1])
    expect(titles.filter((title, at) => title === undefined || titles.indexOf(title) !== at)).toEqual([])
    for (const [url, text] of html) {
      expect([url, text.match(/<h1[ >]/g)?.length]).toEqual([url, 1])
      expect([url, /<meta name="description" content="[^"]{20,}">/.test(text)]).toEqual([url, true])
      expect([url, idsOf(text).filter((id, at, all) => all.indexOf(id) !== at)]).toEqual([url, []])
    }
  })

  test('C89: pages are small, and have nothing inline and nothing from elsewhere', () => {
    for (const [url, text] of [...html, ['404', missingPageHtml(pages, assets)] as const]) {
      expect([url, Buffer.byteLength(text) <= MAX_PAGE_BYTES]).toEqual([url, true])
      expect([url, text.match(/ style="| on\w+="|<style|<script>| src="http|<img|<iframe/g)]).toEqual([url, null])
    }
  })

  test('C89: raw HTML in a page is shown as text, and a link to a script is not a link', () => {
    const page = render('# A\n\n<script>alert(1)</script> [x](javascript:alert(1))\n', { from: 'docs/a.md', places: new Map() })
    expect(page.html).not.toMatch(/<script|href="javascript/)
  })

  test('a link works in the repository and on the site', () => {
    const places = new Map(pages.map(({ path, url }) => [path, url]))
    const link = (href: string, from = 'docs/guides/buy-in-code.md'): string => siteLink(href, from, places)
    expect(link('../cli.md#boltyard-pay')).toBe('/docs/cli#boltyard-pay')
    expect(link('decisions/README.md', 'docs/architecture.md')).toBe('/docs/decisions')
    expect(link('docs/decisions/', 'CONTRIBUTING.md')).toBe('/docs/decisions')
    expect(link('../openapi.json')).toBe('/docs/api')
    expect(link('../examples/hono-worker.ts', 'docs/paywall.md')).toMatch(
      /^https:\/\/\S+\/blob\/main\/examples\/hono-worker\.ts$/,
    )
    expect(link('../examples', 'docs/paywall.md')).toMatch(/^https:\/\/\S+\/tree\/main\/examples$/)
    expect(link('#x402')).toBe('#x402')
  })

  test('every diagram has become a table with rows', () => {
    const architecture = pages.find(({ path }) => path === 'docs/architecture.md')
    expect(architecture?.html.match(/<th>(uses|related to)<\/th>/g)).toHaveLength(3)
    expect(architecture?.html).toContain('<code>sandboxd</code> (starts as a process)')
  })
})
