import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Places, withSiteLinks } from './links.ts'
import { type Rendered, render } from './markdown.ts'
import { type OpenApi, referencePages } from './reference.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Source = { path: string; url: string; group: string; text: string }
export type Page = Source & Rendered & { markdown: string; isInMenu: boolean }
export type Site = { pages: Page[]; llms: string }

/** The menu, in reading order. A page of docs/ that is not listed here is added at the end, so that it cannot be forgotten. */
const GROUPS: [group: string, paths: string[]][] = [
  ['Start', ['docs/README.md', 'docs/quickstart.md']],
  [
    'Sell',
    [
      'docs/paywall.md',
      'docs/gateway.md',
      'docs/guides/charge-without-code.md',
      'docs/guides/be-found.md',
      'docs/guides/check-a-seller.md',
    ],
  ],
  ['Buy', ['docs/guides/buy-in-code.md']],
  ['Events', ['docs/events.md', 'docs/guides/react-to-a-payment.md', 'docs/guides/reconcile-your-books.md']],
  ['API reference', []],
  ['Reference', ['docs/errors.md', 'docs/limits.md', 'docs/cli.md', 'sdk/README.md', 'docs/glossary.md']],
  [
    'Operate',
    [
      'docs/deploying.md',
      'docs/operating.md',
      'docs/operations.md',
      'docs/kubernetes.md',
      'docs/performance.md',
      'docs/security.md',
    ],
  ],
  [
    'Contract',
    [
      'docs/contract.md',
      ...['api', 'paywall', 'mpp', 'l402', 'phoenixd', 'reliability', 'security'].map((name) => `docs/contract/${name}.md`),
    ],
  ],
  ['Inside', ['docs/architecture.md', 'docs/decisions/README.md', 'CONTRIBUTING.md', 'CHANGELOG.md']],
]
const MORE = 'More'
/** Listed on the page of the decisions, and not in the menu. */
const DECISION = /^docs\/decisions\/\d/

/** Pages in other folders, and pages whose URL is not their path. */
const URLS: Record<string, string> = {
  'docs/README.md': '/docs/',
  'docs/decisions/README.md': '/docs/decisions',
  'sdk/README.md': '/docs/sdk',
  'CONTRIBUTING.md': '/docs/contributing',
  'CHANGELOG.md': '/docs/changelog',
}

export function readSite(): Site {
  const sources = [...inOrder(), ...decisions()]
  const places: Places = new Map(sources.map(({ path, url }) => [path, url]))
  const pages = sources.map((source) => {
    const text = source.path === 'docs/decisions/README.md' ? `${source.text}\n${decisionList()}` : source.text
    const markdown = withSiteLinks(text, source.path, places)
    return { ...source, ...render(text, { from: source.path, places }), markdown, isInMenu: !DECISION.test(source.path) }
  })
  return { pages, llms: withSiteLinks(read('llms.txt'), 'llms.txt', places) }
}

function inOrder(): Source[] {
  const existing = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
  const placed = GROUPS.flatMap(([, paths]) => paths)
  const more = existing.filter((path) => !placed.includes(path) && !DECISION.test(path)).sort()
  return [...GROUPS, [MORE, more] as const].flatMap(([group, paths]) =>
    group === 'API reference'
      ? referencePages(JSON.parse(read('docs/openapi.json')) as OpenApi).map((page) => ({ ...page, group }))
      : paths.filter((path) => !path.startsWith('docs/') || existing.includes(path)).map((path) => sourceOf(path, group)),
  )
}

const sourceOf = (path: string, group: string): Source => ({
  path,
  url: URLS[path] ?? `/${path.replace(/\.md$/, '')}`,
  group,
  text: read(path),
})

const decisionPaths = (): string[] =>
  readdirSync(join(root, 'docs/decisions'))
    .filter((name) => /^\d/.test(name))
    .sort()
    .map((name) => `docs/decisions/${name}`)

const decisions = (): Source[] => decisionPaths().map((path) => sourceOf(path, 'Decisions'))

/** The README of the decisions has no list, because in the repository the folder itself is one. */
function decisionList(): string {
  const items = decisions().map(({ path, text }) => {
    const [, number = '', title = ''] = /^# (\d+)\. (.*)$/m.exec(text) ?? []
    return `${number}. [${title}](${path.replace('docs/decisions/', '')})`
  })
  return `## All decisions\n\n${items.join('\n')}\n`
}
