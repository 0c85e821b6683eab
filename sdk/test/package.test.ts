import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { beforeAll, expect, test } from 'vitest'
import { type Server, startServer, temporaryDirectory } from '../../server/test/harness.ts'

/** What people install: packed, installed into an empty directory, used from there. */
const sdk = fileURLToPath(new URL('..', import.meta.url))
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
let server: Server
let directory: string
let env: Record<string, string | undefined>

const run = (file: string, ...args: string[]): string =>
  execFileSync(file, args, { cwd: directory, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

beforeAll(async () => {
  server = await startServer()
  directory = temporaryDirectory()
  env = {
    ...process.env,
    SERVICE_BASE_URL: `${server.url}/v1`,
    SERVICE_API_KEY: JSON.parse(server.readSecret('first-run.json')).apiKey,
  }
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', directory], { cwd: sdk, encoding: 'utf8' }),
  )
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  run('npm', 'install', '--offline', '--no-audit', '--no-fund', `./${filename}`)
}, 120_000)

test('it brings nothing along: no dependencies, no sources, no tests', () => {
  expect(readdirSync(join(directory, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['@boltyard'])
  expect(readdirSync(join(directory, 'node_modules/@boltyard/sdk')).sort()).toEqual(['dist', 'package.json'])
})

test('import and require both give a client that works', () => {
  const use = 'new Boltyard().key().then(({ scopes }) => console.log(scopes.join()))'
  writeFileSync(join(directory, 'use.mjs'), `import { Boltyard } from '@boltyard/sdk'\n${use}`)
  writeFileSync(join(directory, 'use.cjs'), `const { Boltyard } = require('@boltyard/sdk')\n${use}`)
  for (const file of ['use.mjs', 'use.cjs']) expect(run(process.execPath, file)).toContain('nodes:read')
})

test('every entry is there, by import and by require, with no framework installed; the paywall works as it was packed', () => {
  const entries = ['paywall', 'express', 'fastify', 'hono', 'next', 'mcp']
  const names = 'new Set(all.flatMap(Object.keys))'
  const use = `console.log(JSON.stringify([...${names}].filter((name) => /^(paywall|chargeForTool|paymentOf|Gate)$/.test(name)).sort()))`
  const esm = entries.map((name) => `await import('@boltyard/sdk/${name}')`).join(', ')
  const cjs = entries.map((name) => `require('@boltyard/sdk/${name}')`).join(', ')
  writeFileSync(join(directory, 'entries.mjs'), `const all = [${esm}]\n${use}`)
  writeFileSync(join(directory, 'entries.cjs'), `const all = [${cjs}]\n${use}`)
  for (const file of ['entries.mjs', 'entries.cjs'])
    expect(JSON.parse(run(process.execPath, file))).toEqual(['Gate', 'chargeForTool', 'paymentOf', 'paywall'])
  // Whatever goes wrong behind it, here a node that does not exist: an answer without a challenge.
  const handler = "paywall({ nodeId: 'node_none', amountSat: 1 }, () => new Response('free'))"
  const ask = `${handler}(new Request('http://shop/')).then(({ status }) => console.log(status))`
  writeFileSync(join(directory, 'sell.cjs'), `const { paywall } = require('@boltyard/sdk/paywall')\n${ask}`)
  expect(run(process.execPath, 'sell.cjs')).toBe('503\n')
})

test('its types are found, by import and by require, with every check on', () => {
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
  const entry = join(directory, 'node_modules/@boltyard/sdk/dist/esm/index.js')
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, minify: true, format: 'esm', write: false })
  expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThan(15_000)
})

test('nothing in it is read from Node alone, so that it runs in Deno, Bun, workers and browsers', () => {
  const dist = join(directory, 'node_modules/@boltyard/sdk/dist/esm')
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
    (name) => statSync(join(dist, name)).isFile() && name.endsWith('.js'),
  )
  expect(files.length).toBeGreaterThan(5)
  for (const name of files) expect(readFileSync(join(dist, name), 'utf8')).not.toMatch(/\bBuffer\b|from ['"]node:|require\(/)
})
