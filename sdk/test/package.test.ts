import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { Webhook } from 'standardwebhooks'
import { beforeAll, expect, test } from 'vitest'
import { challengeOf, PREIMAGE } from '../../cli/test/scripted.ts'
import { issueL402 } from '../../protocol/src/l402.ts'
import { issueMpp } from '../../protocol/src/mpp.ts'
import { primitives } from '../../protocol/test/support/codecs.ts'
import { credentialOf } from '../../server/test/support/gateway.ts'
import { PROCESS, type Server, startServer, temporaryDirectory } from '../../server/test/support/server.ts'
import { LICENCE, pack } from './packed.ts'

/** The published package: packed, installed into an empty directory, and used from there. */
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')

const PAYMENT_ID = 'pay_01234567890123456789'
const hash = Buffer.alloc(32, 2)
const terms = { paymentId: PAYMENT_ID, invoice: 'lnbcrt1test', paymentHash: hash.toString('hex') }
const mppTerms = { ...terms, amountSat: 1, description: 'Zürich ☕', network: 'regtest' as const }
const l402Terms = { ...terms, paymentHash: hash, tokenId: hash, validUntilSeconds: 2_000_000_000 }
const credentials = [
  credentialOf({ protocol: 'mpp', challenge: issueMpp(primitives, hash, 'shop.example', mppTerms, 2e9) }, '11'.repeat(32)),
  credentialOf({ protocol: 'l402', challenge: issueL402(primitives, hash, l402Terms) }, '11'.repeat(32)),
]

let server: Server
let directory: string
let env: Record<string, string | undefined>

const run = (file: string, ...args: string[]): string =>
  execFileSync(file, args, { cwd: directory, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

beforeAll(async () => {
  server = await startServer({ command: PROCESS, store: 'embedded' })
  directory = temporaryDirectory()
  env = {
    ...process.env,
    SERVICE_BASE_URL: `${server.url}/v1`,
    SERVICE_API_KEY: JSON.parse(server.readSecret('first-run.json')).apiKey,
  }
  const tarball = pack('sdk', directory)
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  run('npm', 'install', '--offline', '--no-audit', '--no-fund', tarball)
})

test('D12: packed in a fresh clone, it is complete, without dependencies, sources or tests', () => {
  expect(readdirSync(join(directory, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['@boltyard'])
  const installed = join(directory, 'node_modules/@boltyard/sdk')
  expect(readdirSync(installed).sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json'])
  expect(readFileSync(join(installed, 'LICENSE'), 'utf8')).toBe(readFileSync(LICENCE, 'utf8'))
  const { exports } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  const files = Object.values<any>(exports).flatMap((entry) =>
    typeof entry === 'string' ? [entry] : Object.values<string>(entry),
  )
  expect(files).toHaveLength(29)
  for (const file of files) {
    expect(existsSync(join(installed, file)), file).toBe(true)
    if (file.endsWith('.js')) expect(existsSync(join(installed, file.replace(/js$/, 'd.ts'))), file).toBe(true)
  }
})

test('D15: its package.json can be required, as tools do to read the version', () => {
  writeFileSync(join(directory, 'version.cjs'), `console.log(require('@boltyard/sdk/package.json').version)`)
  expect(run(process.execPath, 'version.cjs')).toMatch(/^\d+\.\d+\.\d+\n$/)
})

test('D15: declarations refer to files that exist, so TypeScript 4.9 finds them', () => {
  const dist = join(directory, 'node_modules/@boltyard/sdk/dist')
  const declarations = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))
  const named = declarations.flatMap((name) =>
    [...readFileSync(join(dist, name), 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g)].map(([, to = '']) =>
      join(dirname(name), to),
    ),
  )
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter((path) => !existsSync(join(dist, path)))).toEqual([])
})

test('import and require both give a working client that lets the program exit', () => {
  const stay = `setTimeout(() => console.log('a kept connection keeps the program'), 20_000).unref()`
  const use = `new Boltyard().key().then(({ scopes }) => { console.log(scopes.join()); ${stay} })`
  writeFileSync(join(directory, 'use.mjs'), `import { Boltyard } from '@boltyard/sdk'\n${use}`)
  writeFileSync(join(directory, 'use.cjs'), `const { Boltyard } = require('@boltyard/sdk')\n${use}`)
  for (const file of ['use.mjs', 'use.cjs']) expect(run(process.execPath, file)).toMatch(/^nodes:read.*\n$/)
})

test('D15: errors of the ESM copy are recognized by the CommonJS copy and vice versa', () => {
  const program = `
    import { createRequire } from 'node:module'
    import * as esm from '@boltyard/sdk'
    const require = createRequire(import.meta.url)
    const cjs = require('@boltyard/sdk')
    class Own extends cjs.NotFoundError {}
    const facts = { code: 'x', status: 404 }
    const webhook = await require('@boltyard/sdk/webhooks').verifyWebhook('', {}, 'whsec_' + 'a'.repeat(32)).catch((error) => error)
    const { WebhookVerificationError } = await import('@boltyard/sdk/webhooks')
    const [theirs, ours] = [new cjs.CredentialError('', facts), new esm.CredentialError('', facts)]
    console.log(JSON.stringify([
      cjs.CredentialError === esm.CredentialError,
      [theirs instanceof esm.CredentialError, theirs instanceof esm.BadRequestError, theirs instanceof esm.BoltyardError],
      [ours instanceof cjs.CredentialError, ours instanceof cjs.BadRequestError, ours instanceof cjs.BoltyardError],
      [theirs instanceof esm.NotFoundError, new Error() instanceof esm.BoltyardError, null instanceof esm.BoltyardError],
      [new Own('', facts) instanceof Own, new Own('', facts) instanceof esm.NotFoundError, new esm.NotFoundError('', facts) instanceof Own],
      [webhook instanceof WebhookVerificationError, webhook instanceof esm.BoltyardError, webhook instanceof esm.NotFoundError],
    ]))`
  writeFileSync(join(directory, 'copies.mjs'), program)
  expect(JSON.parse(run(process.execPath, 'copies.mjs'))).toEqual([
    false,
    [true, true, true],
    [true, true, true],
    [false, false, false],
    [true, true, false],
    [true, true, false],
  ])
})

test('every entry point loads with import and require without any framework installed; the packed paywall works', () => {
  const entries = [
    'paywall',
    'express',
    'fastify',
    'hono',
    'next',
    'koa',
    'nest',
    'elysia',
    'mcp',
    'webhooks',
    'buy',
    'discovery',
  ]
  const names = 'new Set(all.flatMap(Object.keys))'
  const use = `console.log(JSON.stringify([...${names}].filter((name) => /^(paywall|chargeForTool|paymentOf|Gate|verifyWebhook|buyer|discovery|openapiOf)$/.test(name)).sort()))`
  const esm = entries.map((name) => `await import('@boltyard/sdk/${name}')`).join(', ')
  const cjs = entries.map((name) => `require('@boltyard/sdk/${name}')`).join(', ')
  writeFileSync(join(directory, 'entries.mjs'), `const all = [${esm}]\n${use}`)
  writeFileSync(join(directory, 'entries.cjs'), `const all = [${cjs}]\n${use}`)
  for (const file of ['entries.mjs', 'entries.cjs'])
    expect(JSON.parse(run(process.execPath, file))).toEqual([
      ...['Gate', 'buyer', 'chargeForTool', 'discovery', 'openapiOf', 'paymentOf', 'paywall', 'verifyWebhook'],
    ])
  // If anything fails, here because the node does not exist, the response has no challenge.
  const handler = "paywall({ nodeId: 'node_none', amountSat: 1 }, () => new Response('free'))"
  const ask = `${handler}(new Request('http://shop/')).then(({ status }) => console.log(status))`
  writeFileSync(join(directory, 'sell.cjs'), `const { paywall } = require('@boltyard/sdk/paywall')\n${ask}`)
  expect(run(process.execPath, 'sell.cjs')).toBe('503\n')
})

test('its types resolve with import and require, with all checks on', () => {
  const use = 'const all: Promise<Node[]> = new Boltyard().nodes.list(); void all\n'
  writeFileSync(join(directory, 'typed.mts'), `import { Boltyard, type Node } from '@boltyard/sdk'\n${use}`)
  writeFileSync(join(directory, 'typed.cts'), `import { Boltyard, type Node } from '@boltyard/sdk'\n${use}`)
  const options = {
    strict: true,
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'dom'],
    types: [],
    noEmit: true,
    skipLibCheck: false,
  }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['typed.mts', 'typed.cts'] }))
  expect(run(process.execPath, tsc, '-p', '.')).toBe('')
  writeFileSync(
    join(directory, 'typed.mts'),
    `import { Boltyard } from '@boltyard/sdk'\nexport const no: number = new Boltyard().nodes.list()\n`,
  )
  expect(() => run(process.execPath, tsc, '-p', '.')).toThrow()
})

test('the client is under 15 kB, gzipped', async () => {
  const entry = join(directory, 'node_modules/@boltyard/sdk/dist/esm/sdk/src/index.js')
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, minify: true, format: 'esm', write: false })
  expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThan(15_000)
})

test('except for the proxy, it depends on nothing that only Node has, so it runs in Deno, Bun, workers and browsers', () => {
  const dist = join(directory, 'node_modules/@boltyard/sdk/dist/esm')
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
    (name) => statSync(join(dist, name)).isFile() && name.endsWith('.js') && !name.startsWith('sdk/src/proxy/'),
  )
  expect(files.length).toBeGreaterThan(5)
  for (const name of files) {
    const text = readFileSync(join(dist, name), 'utf8')
    expect(text, name).not.toMatch(/from ['"](?:node:|.*\/proxy\/)|require\(/)
    // The codecs use Buffer if it is available.
    if (!name.endsWith('protocol/src/bytes.js')) expect(text, name).not.toMatch(/\bBuffer\b/)
  }
})

test('without Node’s globals it reads credentials the same way', async () => {
  const entry = join(directory, 'node_modules/@boltyard/sdk/dist/esm/sdk/src/index.js')
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'iife', globalName: 'sdk', write: false })
  const context = createContext({ atob, btoa, TextDecoder, TextEncoder, credentials })
  runInContext(outputFiles[0]?.text ?? '', context)
  const program = '[typeof Buffer, typeof process, ...credentials.map(sdk.paymentIdOf)]'
  expect([...runInContext(program, context)]).toEqual(['undefined', 'undefined', PAYMENT_ID, PAYMENT_ID])
})

test('without Node’s globals it verifies a webhook', async () => {
  const entry = join(directory, 'node_modules/@boltyard/sdk/dist/esm/sdk/src/webhooks/index.js')
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'iife', globalName: 'sdk', write: false })
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const sentAt = new Date()
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('evt_1', sentAt, '{"id":"evt_1"}'),
  }
  const context = createContext({ atob, btoa, crypto, TextDecoder, TextEncoder, secret, headers })
  runInContext(outputFiles[0]?.text ?? '', context)
  expect(runInContext('typeof Buffer + typeof process', context)).toBe('undefinedundefined')
  expect((await runInContext(`sdk.verifyWebhook('{"id":"evt_1"}', headers, secret)`, context)).id).toBe('evt_1')
  await expect(runInContext(`sdk.verifyWebhook('{"id":"evt_2"}', headers, secret)`, context)).rejects.toThrow(/No signature/)
})

test('without Node’s globals it publishes prices', async () => {
  const entry = join(directory, 'node_modules/@boltyard/sdk/dist/esm/sdk/src/discovery/index.js')
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'iife', globalName: 'sdk', write: false })
  const context = createContext({ atob, btoa, Request, Response, TextDecoder, TextEncoder, URL })
  runInContext(outputFiles[0]?.text ?? '', context)
  const documents = `sdk.discovery({ title: 'Jokes', publicUrl: 'https://shop.example', routes: { 'GET /joke': { amountSat: 25 } } })`
  const answer = runInContext(`${documents}(new Request('https://shop.example/openapi.json'))`, context)
  expect(await answer.json()).toMatchObject({ servers: [{ url: 'https://shop.example' }], paths: { '/joke': { get: {} } } })
})

test('without Node’s globals it buys, with purchases in memory and without node:crypto', async () => {
  const entry = join(directory, 'node_modules/@boltyard/sdk/dist/esm/sdk/src/buy/index.js')
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'iife', globalName: 'sdk', write: false })
  const { challenge } = challengeOf()
  const asked: (string | null)[] = []
  const fetch = async (_: URL, { headers }: { headers: Headers }): Promise<Response> => {
    asked.push(headers.get('authorization'))
    return headers.has('authorization')
      ? new Response('Sunny')
      : new Response('', { status: 402, headers: { 'www-authenticate': challenge } })
  }
  const web = { AbortController, AbortSignal, Blob, FormData, Headers, ReadableStream, Request, Response, URL, performance }
  const timers = { setTimeout, clearTimeout, setInterval, clearInterval }
  const context = createContext({ ...web, ...timers, atob, btoa, crypto, TextDecoder, TextEncoder, fetch, PREIMAGE })
  runInContext(outputFiles[0]?.text ?? '', context)
  const limits = 'maxSatPerRequest: 10, maxSatPerDay: 10'
  expect(() => runInContext(`sdk.buyer({ wallet: async () => PREIMAGE, ${limits} })`, context)).toThrow(/Pass `store`/)
  const program = `sdk.buyer({ wallet: async () => PREIMAGE, ${limits}, store: sdk.memoryStore() }).fetch('https://shop.example/')`
  expect(await (await runInContext(program, context)).text()).toBe('Sunny')
  expect(asked).toEqual([null, `L402 AgE=:${PREIMAGE}`])
})
