import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, test } from 'vitest'
import { eventually, temporaryDirectory } from '../server/test/support/server.ts'

const DEMO = fileURLToPath(new URL('../examples/demo.ts', import.meta.url))
const tsx = createRequire(import.meta.url).resolve('tsx')
let directory: string

beforeEach(() => {
  directory = temporaryDirectory()
})

function demo(...args: string[]) {
  const child = spawn(process.execPath, ['--import', tsx, DEMO, ...args], { env: { ...process.env, TMPDIR: directory } })
  const printed = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    printed.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    printed.stderr += chunk
  })
  return { child, printed, exit: once(child, 'close').then(([code]) => code as number) }
}

/** Daemons outlive the process that started them, so look for the data directory in all command lines. */
function running(): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(join(directory, 'boltyard-demo-'))
    } catch {
      return false
    }
  })
}

test('it shows every step and leaves nothing behind', async () => {
  const { printed, exit } = demo()
  expect(await exit).toBe(0)
  for (const step of [
    /ready after \d+ ms/,
    /402 Payment Required/,
    /paid 21 sat/,
    /200 OK/,
    /Payment-Receipt: /,
    /with L402/,
    /Done\./,
  ])
    expect(printed.stdout).toMatch(step)
  // The output goes into a pipe, so it must be plain text.
  expect(printed.stdout).not.toContain('\u001b')
  expect(printed.stderr).toBe('')
  expect(running()).toEqual([])
  expect(readdirSync(directory).filter((name) => name.startsWith('boltyard-demo-'))).toEqual([])
})

test('--json: one line for programs, with both purchases', async () => {
  const { printed, exit } = demo('--json')
  expect(await exit).toBe(0)
  expect(printed.stdout.trim().split('\n')).toHaveLength(1)
  const { ok, purchases } = JSON.parse(printed.stdout)
  expect(ok).toBe(true)
  expect(purchases).toEqual([
    expect.objectContaining({ protocol: 'mpp', amountSat: 21, receipt: expect.any(String), secondTime: 402 }),
    expect.objectContaining({ protocol: 'l402', amountSat: 21, receipt: null, secondTime: 200 }),
  ])
})

test('Ctrl-C in the middle leaves nothing behind either', async () => {
  const { child, printed, exit } = demo()
  await eventually(() => printed.stdout.includes('A node for the shop'), 'the service to be up')
  child.kill('SIGINT')
  expect(await exit).toBe(130)
  expect(running()).toEqual([])
  expect(readdirSync(directory).filter((name) => name.startsWith('boltyard-demo-'))).toEqual([])
})

test('an unknown option is reported, not ignored', async () => {
  const { printed, exit } = demo('--jsno')
  expect(await exit).toBe(2)
  expect(printed.stderr).toContain('--jsno')
})
