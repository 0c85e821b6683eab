import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { LICENCE, pack } from '../../sdk/test/packed.ts'
import { PROCESS, type Server, startServer, temporaryDirectory } from '../../server/test/support/server.ts'

/** The published package: packed, installed into an empty directory, and run by name. */
const prefix = temporaryDirectory()
let server: Server

function boltyard(args: string[], env: Record<string, string> = {}, input = '') {
  return spawnSync(join(prefix, 'bin', 'boltyard'), args, {
    cwd: prefix,
    env: { PATH: process.env.PATH ?? '', HOME: prefix, ...env },
    encoding: 'utf8',
    input,
  })
}

beforeAll(async () => {
  server = await startServer({ command: PROCESS, store: 'embedded' })
  execFileSync('npm', ['install', '-g', '--prefix', prefix, '--offline', '--no-audit', '--no-fund', pack('cli', prefix)], {
    cwd: prefix,
    stdio: 'pipe',
  })
})

test('D12: it is one program with only its license and a README', () => {
  const installed = join(prefix, 'lib', 'node_modules')
  expect(readdirSync(installed).filter((name) => !name.startsWith('.'))).toEqual(['@boltyard'])
  const files = readdirSync(join(installed, '@boltyard', 'cli'), { recursive: true, encoding: 'utf8' }).sort()
  expect(files).toEqual(['LICENSE', 'README.md', 'bin', 'bin/boltyard.js', 'dist', 'dist/boltyard.js', 'package.json'])
  expect(readFileSync(join(installed, '@boltyard', 'cli', 'LICENSE'), 'utf8')).toBe(readFileSync(LICENCE, 'utf8'))
  const program = readFileSync(join(installed, '@boltyard', 'cli', 'dist', 'boltyard.js'), 'utf8')
  expect(readFileSync(join(installed, '@boltyard', 'cli', 'bin', 'boltyard.js'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  expect(
    [...program.matchAll(/^import .* from "([^"]+)"/gm)].map(([, from = '']) => from).filter((from) => !from.startsWith('node:')),
  ).toEqual([])
  expect(statSync(join(installed, '@boltyard', 'cli', 'dist', 'boltyard.js')).size).toBeLessThan(900_000)
})

test('once installed, it works end to end: a node, a challenge, a payment, a delivery', () => {
  const env = { SERVICE_BASE_URL: `${server.url}/v1`, SERVICE_API_KEY: server.firstRun.apiKey, DATA_DIR: server.dataDir }
  const gets = (args: string[], input = ''): any => {
    const { status, stdout, stderr } = boltyard(args, env, input)
    expect([status, stderr]).toEqual([0, ''])
    return JSON.parse(stdout)
  }
  const { node } = gets(['nodes', 'create', '--wait', '--credentials-file', join(prefix, 'shop.json')])
  const payment = gets(['payments', 'create', '--node', node.id, '--amount-sat', '100', '--description', 'Weather report'])
  const { credential } = gets(['sandbox', 'pay', '-'], payment.challenge)
  expect(gets(['payments', 'redeem'], credential)).toMatchObject({ id: payment.id, status: 'paid', amountSat: 100 })
})

test('it works without a home directory, a terminal or permissions', () => {
  writeFileSync(join(prefix, 'empty'), '')
  const { status, stderr } = boltyard(['nodes', 'list', '--api-key-file', join(prefix, 'empty')], { HOME: '/nonexistent' })
  expect([status, JSON.parse(stderr).error.code]).toEqual([2, 'usage'])
})

test('the file that npm links exists before the build, so npx boltyard works in a fresh clone', () => {
  const room = join(dirname(LICENCE), 'cli')
  const { bin } = JSON.parse(readFileSync(join(room, 'package.json'), 'utf8'))
  expect(bin.boltyard).not.toMatch(/dist/)
  expect(statSync(join(room, bin.boltyard)).mode & 0o111).not.toBe(0)
})
