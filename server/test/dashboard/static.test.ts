import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { buildApp } from '../../src/http/app.ts'
import type { AppDeps } from '../../src/http/deps.ts'
import { createLogger } from '../../src/platform/log.ts'
import { type Answer, type Server, send, startServer, temporaryDirectory } from '../support/server.ts'

/** A built app of a few files: the tests are about how they are served, not what they contain. */
const SCRIPT = `console.log('${'x'.repeat(2000)}')`
const PAGE = '<!doctype html><title>Boltyard</title>'
let app: FastifyInstance
let port: number
let signInLoads = 0

async function serving(appDirectory: string): Promise<FastifyInstance> {
  const deps = {
    config: readConfig({}),
    sandbox: undefined,
    appDirectory,
    docsDirectory: '/nonexistent/dist',
    signIn: {
      loadAhead: () => {
        signInLoads++
      },
    },
    isStopping: () => false,
    logger: await createLogger('silent'),
  }
  return buildApp(deps as unknown as AppDeps)
}

beforeAll(async () => {
  const directory = join(temporaryDirectory(), 'dashboard')
  mkdirSync(join(directory, 'dist', 'assets'), { recursive: true })
  writeFileSync(join(directory, 'dist', 'index.html'), PAGE)
  writeFileSync(join(directory, 'dist', 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
  const script = join(directory, 'dist', 'assets', 'index-a1b2c3.js')
  writeFileSync(script, SCRIPT)
  writeFileSync(`${script}.gz`, gzipSync(SCRIPT))
  writeFileSync(`${script}.br`, brotliCompressSync(SCRIPT))
  writeFileSync(join(directory, 'dist', '.hidden.txt'), 'a secret beside it')
  writeFileSync(join(directory, 'dist', 'assets', 'index-d4e5f6.css'), 'body{}')
  writeFileSync(join(directory, 'secret.txt'), 'a secret beside it')
  app = await serving(join(directory, 'dist'))
  await app.listen({ host: '127.0.0.1', port: 0 })
  ;({ port } = app.server.address() as { port: number })
})
afterAll(() => app.close())

const get = (path: string, headers: Record<string, string> = {}): Promise<Answer> => send(port, 'GET', path, { headers })

test('/ and /dashboard redirect to the app', async () => {
  for (const path of ['/', '/dashboard']) {
    const { status, headers } = await get(path)
    expect([path, status, headers.location]).toEqual([path, 302, '/dashboard/'])
  }
})

test('opening a page preloads the sign-in library; loading a script does not', async () => {
  const before = signInLoads
  await get('/dashboard/assets/index-a1b2c3.js')
  await get('/v1/nodes')
  expect(signInLoads).toBe(before)
  await get('/dashboard/nodes')
  expect(signInLoads).toBe(before + 1)
})

test('every path of the app returns the same page, which is not cached', async () => {
  for (const path of ['', 'nodes', 'nodes/node_d1vqmr0q3r5f65kbsy7d', 'link', 'developers/api-keys', 'index.html']) {
    const { status, headers, text } = await get(`/dashboard/${path}`)
    expect([path, status, text]).toEqual([path, 200, PAGE])
    expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' })
  }
  expect((await get('/dashboard/nodes?tab=payments')).text).toBe(PAGE)
})

test('the app runs and loads only its own files, and cannot be framed', async () => {
  for (const path of ['', 'assets/index-a1b2c3.js', 'icon.svg']) {
    const { headers } = await get(`/dashboard/${path}`)
    const policy = Object.fromEntries(
      String(headers['content-security-policy'])
        .split('; ')
        .map((rule) => [rule.split(' ')[0], rule.split(' ').slice(1).join(' ')]),
    )
    expect(policy).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': "'self' data:",
      'font-src': "'self'",
      'connect-src': "'self'",
      'manifest-src': "'self'",
      'frame-ancestors': "'none'",
      'base-uri': "'none'",
      'form-action': "'self'",
    })
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'x-request-id': expect.any(String),
    })
  }
})

test('files with a hash in their name are immutable; a missing file is not the page', async () => {
  const script = await get('/dashboard/assets/index-a1b2c3.js')
  expect([script.status, script.text]).toEqual([200, SCRIPT])
  expect(script.headers).toMatchObject({
    'content-type': 'application/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
  })
  expect((await get('/dashboard/assets/index-d4e5f6.css')).headers['content-type']).toBe('text/css; charset=utf-8')
  expect((await get('/dashboard/icon.svg')).headers).toMatchObject({
    'content-type': 'image/svg+xml',
    'cache-control': 'max-age=3600',
  })
  for (const path of ['assets/index-old.js', 'assets/', 'assets', 'robots.txt', 'nodes/x.js']) {
    const answer = await get(`/dashboard/${path}`)
    expect([path, answer.status, answer.json().error.code]).toEqual([path, 404, 'not_found'])
  }
})

test('a person who opens a path that does not exist gets a page; a program gets JSON', async () => {
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
  for (const path of ['/nodes', '/robots.txt', '/dashboard/robots.txt', '/favicon.png']) {
    const { status, headers, text } = await get(path, { accept })
    expect([path, status, headers['content-type']]).toEqual([path, 404, 'text/html; charset=utf-8'])
    expect(headers).toMatchObject({ 'content-security-policy': expect.stringMatching(/^default-src 'none'/), vary: 'accept' })
    expect(text).toContain('There is no page at this address.')
    expect((await get(path)).json().error.code).toBe('not_found')
    expect((await send(port, 'POST', path, { headers: { accept } })).json().error.code).toBe('not_found')
  }
  for (const path of ['/v1/no-such-path', '/dashboard/api/no-such-path', '/operator/v1/no-such-path'])
    expect([path, (await get(path, { accept })).json().error.code]).toEqual([path, 'not_found'])
})

test('the icon is also where browsers look for it on pages that name none', async () => {
  const { status, headers } = await get('/favicon.ico')
  expect([status, headers['content-type']]).toEqual([200, 'image/svg+xml'])
})

test('files are sent compressed only to clients that accept that', async () => {
  const path = '/dashboard/assets/index-a1b2c3.js'
  const length = async (encoding?: string): Promise<[string | undefined, boolean]> => {
    const { headers } = await get(path, encoding === undefined ? {} : { 'accept-encoding': encoding })
    expect([headers.vary, headers['content-type']]).toEqual(['accept-encoding', 'application/javascript; charset=utf-8'])
    return [headers['content-encoding'], Number(headers['content-length']) < SCRIPT.length]
  }
  for (const takes of ['gzip', 'gzip, deflate', 'br;q=0.5, gzip;q=0.8', 'GZIP', 'deflate , gzip ; Q=0.001', 'br;q=0, gzip'])
    expect([takes, await length(takes)]).toEqual([takes, ['gzip', true]])
  for (const takes of ['br', 'gzip, deflate, br, zstd']) expect([takes, await length(takes)]).toEqual([takes, ['br', true]])
  for (const takes of [undefined, '', 'deflate', 'identity', 'gzip;q=0', 'gzip ; q=0.000', 'gzip;q=x', 'xgzip'])
    expect([takes, await length(takes)]).toEqual([takes, [undefined, false]])
  for (const takes of ['gzip', 'br']) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'accept-encoding': takes } })
    expect(await answer.text()).toBe(SCRIPT)
  }
})

test('an unchanged file is not sent again', async () => {
  const { headers } = await get('/dashboard/icon.svg')
  const again = await get('/dashboard/icon.svg', { 'if-none-match': String(headers.etag) })
  expect([again.status, again.text, again.headers['cache-control']]).toEqual([304, '', 'max-age=3600'])
})

test('no path leads out of its directory, in any spelling', async () => {
  const paths = [
    '..%2fsecret.txt',
    '..%2f..%2fetc%2fpasswd',
    '../secret.txt',
    './../secret.txt',
    '%2e%2e/secret.txt',
    '%2e%2e%2fsecret.txt',
    '..%5csecret.txt',
    'assets/../../secret.txt',
    'assets%2f..%2f..%2fsecret.txt',
    '//etc/passwd',
    '%00',
    'index.html%00.js',
    '%c0%ae%c0%ae/secret.txt',
    '..%252fsecret.txt',
    '.hidden.txt',
    'assets/.hidden.txt',
  ]
  for (const path of paths) {
    const answer = await get(`/dashboard/${path}`)
    expect([path, answer.text.includes('a secret beside it') || answer.text.includes('root:')]).toEqual([path, false])
    expect([path, answer.status >= 400]).toEqual([path, true])
  }
})

test('HEAD has the headers and no body; other methods are refused', async () => {
  const head = await send(port, 'HEAD', '/dashboard/')
  expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', String(PAGE.length)])
  for (const method of ['POST', 'PUT', 'DELETE']) expect((await send(port, method, '/dashboard/nodes')).status).toBe(404)
})

test('before the app is built, a message says how to build it, and everything else works', async () => {
  const unbuilt = await serving(join(temporaryDirectory(), 'nothing'))
  const answer = await unbuilt.inject({ url: '/dashboard/', headers: { accept: 'text/html' } })
  expect([answer.statusCode, answer.json().error.message]).toEqual([404, expect.stringContaining('npm run build')])
  expect((await unbuilt.inject('/healthz')).statusCode).toBe(200)
  await unbuilt.close()
})

test('the build compresses exactly the files that it writes', () => {
  const assets = fileURLToPath(new URL('../../../dashboard/dist/assets/', import.meta.url))
  const names = readdirSync(assets).filter((name) => name.endsWith('.js.br'))
  expect(names.length).toBeGreaterThan(10)
  for (const name of names.map((compressed) => compressed.slice(0, -3))) {
    const script = readFileSync(join(assets, name), 'utf8')
    expect([name, brotliDecompressSync(readFileSync(join(assets, `${name}.br`))).toString() === script]).toEqual([name, true])
    expect([name, gunzipSync(readFileSync(join(assets, `${name}.gz`))).toString() === script]).toEqual([name, true])
  }
})

describe('with the built server', () => {
  const room = fileURLToPath(new URL('../..', import.meta.url))
  let server: Server

  test('the server finds the app beside it, and a node’s host name is not the app', async () => {
    const place = temporaryDirectory()
    mkdirSync(join(place, 'server'))
    mkdirSync(join(place, 'dashboard', 'dist'), { recursive: true })
    writeFileSync(join(place, 'dashboard', 'dist', 'index.html'), PAGE)
    cpSync(join(room, 'dist'), join(place, 'server', 'dist'), { recursive: true })
    cpSync(join(room, '..', 'sandboxd', 'dist'), join(place, 'sandboxd', 'dist'), { recursive: true })
    execFileSync('ln', ['-s', join(room, '..', 'node_modules'), join(place, 'node_modules')])
    execFileSync('ln', ['-s', join(room, 'node_modules'), join(place, 'server', 'node_modules')])
    writeFileSync(join(place, 'server', 'package.json'), '{"type":"module"}')
    const command = [process.execPath, join(place, 'server', 'dist', 'main.js')]
    server = await startServer({ command, env: { NODE_DOMAIN: 'nodes.example' } })
    expect((await server.send('GET', '/dashboard/')).text).toBe(PAGE)
    const onNode = await server.send('GET', '/dashboard/', { headers: { host: 'abc.nodes.example' } })
    expect(onNode.text).not.toContain(PAGE)
    expect(onNode.status).toBe(404)
  })
})
