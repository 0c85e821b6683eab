import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { openApp } from '../support/app.ts'
import { type Answer, send, temporaryDirectory } from '../support/server.ts'

/** A built site of a few files: the tests are about how they are served, not what they contain. */
const PAGE = `<!doctype html><title>Start</title>${'x'.repeat(2000)}`
const HTML = { accept: 'text/html,*/*' }
let directory: string
let port: number

const get = (path: string, headers: Record<string, string> = {}): Promise<Answer> => send(port, 'GET', path, { headers })

const codeOf = (answer: Answer): unknown[] => [answer.status, answer.json().error.code]

function write(name: string, text: string | Buffer): void {
  mkdirSync(join(directory, name, '..'), { recursive: true })
  writeFileSync(join(directory, name), text)
}

beforeAll(async () => {
  const site = temporaryDirectory()
  directory = join(site, 'dist')
  writeFileSync(join(site, 'secret.txt'), 'a secret beside it')
  ;({ port } = await openApp({}, { docsDirectory: directory }))
})

describe.sequential('C89: how the documentation is served', () => {
  test('C89: before it is built, a page says so and reloads; a program is told to try again', async () => {
    for (const path of ['/docs', '/docs/', '/docs/quickstart']) {
      const { status, headers, text } = await get(path, HTML)
      expect([status, headers['retry-after'], headers['cache-control']]).toEqual([503, '2', 'no-store'])
      expect(text).toContain('<meta http-equiv="refresh" content="2" />')
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'/)
    }
    for (const path of ['/docs', '/docs/quickstart.md', '/llms.txt']) {
      const answer = await get(path)
      expect([codeOf(answer), answer.headers['retry-after']]).toEqual([[503, 'service_unavailable'], '2'])
    }
  })

  test('C89: once it is built, without a restart, every page is there, also as Markdown', async () => {
    write('index.html', PAGE)
    write('index.html.br', brotliCompressSync(PAGE))
    write('404.html', '<title>Page not found</title>')
    write('guides/buy.html', '<title>Buy</title>')
    write('guides/buy.md', '# Buy')
    write('llms.txt', '# Boltyard')
    write('assets/site-A1B2.css', 'body{}')
    for (const path of ['/docs', '/docs/']) expect((await get(path)).text).toBe(PAGE)
    for (const path of ['/docs/guides/buy', '/docs/guides/buy/']) expect((await get(path)).text).toBe('<title>Buy</title>')
    const copy = await get('/docs/guides/buy.md')
    expect([copy.text, copy.headers['content-type']]).toEqual(['# Buy', 'text/markdown; charset=utf-8'])
    const list = await get('/llms.txt')
    expect([list.text, list.headers['content-type']]).toEqual(['# Boltyard', 'text/plain; charset=utf-8'])
  })

  test('a browser gets the compressed copy, revalidates pages, and keeps files with a hash in their name', async () => {
    const { headers } = await get('/docs/', { 'accept-encoding': 'br' })
    expect([headers['content-encoding'], Number(headers['content-length'])]).toEqual(['br', brotliCompressSync(PAGE).length])
    expect(headers['cache-control']).toBe('no-cache')
    expect((await get('/docs/', { 'if-none-match': String((await get('/docs/')).headers.etag) })).status).toBe(304)
    expect((await get('/docs/assets/site-A1B2.css')).headers['cache-control']).toBe('public, max-age=31536000, immutable')
  })

  test('C89: an unknown page is a page for people and an error for programs', async () => {
    const { status, headers, text } = await get('/docs/nothing', HTML)
    expect([status, text, headers['content-type']]).toEqual([404, '<title>Page not found</title>', 'text/html; charset=utf-8'])
    expect(codeOf(await get('/docs/nothing'))).toEqual([404, 'not_found'])
  })

  test.each([
    '/docs/../secret.txt',
    '/docs/..%2fsecret.txt',
    '/docs/%2e%2e/secret.txt',
    '/docs//secret.txt',
    '/docs/dist/index.html',
  ])('nothing outside the site is served: %s', async (path) => expect((await get(path)).status).toBe(404))
})
