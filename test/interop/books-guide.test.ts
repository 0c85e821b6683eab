import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { charge, newMerchant, pay, untilSettled } from '../../server/test/support/gateway.ts'
import type { Created, Owner } from '../../server/test/support/nodes.ts'
import { eventually, removeAfterwards, type Server, startServer } from '../../server/test/support/server.ts'

/** The program of docs/guides/reconcile-your-books.md, unchanged. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const guide = readFileSync(join(root, 'docs/guides/reconcile-your-books.md'), 'utf8')
const [, program = ''] = /```js\n([\s\S]*?)```/.exec(guide) ?? []
/** Inside the folder of the SDK, so that Node finds `@boltyard/sdk` by its name. */
const directory = mkdtempSync(join(root, 'sdk/types-'))
removeAfterwards(directory)
const journal = join(directory, 'books.jsonl')

let server: Server
let merchant: Owner
let shop: Created
const started: ChildProcess[] = []

beforeAll(async () => {
  writeFileSync(join(directory, 'books.mjs'), program)
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  merchant = await newMerchant(server)
  shop = await merchant.createReady({ name: 'shop' })
})
afterAll(() => {
  for (const child of started) child.kill('SIGKILL')
})

function start(...args: string[]): ChildProcess {
  const env = { PATH: process.env.PATH, SERVICE_BASE_URL: `${server.url}/v1`, SERVICE_API_KEY: merchant.key.key }
  const child = spawn(process.execPath, ['books.mjs', ...args], { cwd: directory, env, stdio: 'pipe' })
  started.push(child)
  return child
}

async function check(): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = start('check')
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.on('data', (chunk) => {
      printed[name] += chunk
    })
  const [code] = await once(child, 'close')
  return { code, ...printed }
}

/** Open transactions of other tests can delay an event, as the guide says: then the check is repeated. */
const untilEqual = (): Promise<string> =>
  eventually(async () => {
    const { code, stdout, stderr } = await check()
    if (code !== 0) throw new Error(stdout + stderr)
    return stdout
  }, 'the books to be equal to the CSV')

async function sell(amountSat: number, description: string): Promise<string> {
  const payment = await charge(merchant, shop, { amountSat, description })
  await pay(server, payment)
  await untilSettled(merchant, payment)
  return payment.id
}

const booked = (): string[] =>
  readFileSync(journal, 'utf8')
    .split('\n')
    .slice(0, -1)
    .flatMap((line) => JSON.parse(line).payments.map(([id]: [string]) => id))

test('C53, C54: after kill -9 and a line that was cut off, the books agree with the CSV', async () => {
  const first = [await sell(21, 'One joke'), await sell(1000, '=1+1, "quoted", pay_1')]
  await eventually(async () => {
    const path = '/events?types=payment.settled'
    return (await merchant.want<{ events: unknown[] }>(200, 'GET', path)).events.length === 2
  }, 'both events')
  const keeping = start()
  await eventually(() => booked().length === 2, 'two payments in the books')
  const ended = once(keeping, 'close')
  keeping.kill('SIGKILL')
  await ended
  appendFileSync(journal, '{"cursor":"AAAA","payments":[["pay_')
  const last = await sell(300, 'While nobody was looking')
  // Unpaid, so it is in neither sum.
  await charge(merchant, shop, { amountSat: 7 })
  expect(await untilEqual()).toBe('CSV:   1321 sat, payments: 3\nbooks: 1321 sat, payments: 3\n')
  expect(booked()).toEqual([...first, last])
  expect(await untilEqual(), 'again').toBe('CSV:   1321 sat, payments: 3\nbooks: 1321 sat, payments: 3\n')
})

test('C53, C54: a payment that the books lack, or have with another amount, is reported', async () => {
  const before = readFileSync(journal, 'utf8')
  const [first = '', second = '', third = ''] = booked()
  writeFileSync(
    journal,
    before.replace(`["${first}",21]`, `["pay_unknown",21]`).replace(`["${second}",1000]`, `["${second}",999]`),
  )
  const { code, stdout, stderr } = await check()
  expect(code).toBe(1)
  expect(stdout).toBe('CSV:   1321 sat, payments: 3\nbooks: 1299 sat, payments: 2\n')
  expect(stderr).toContain('pay_unknown is only in the books\n')
  expect(stderr).toContain(`${first} is only in the CSV\n`)
  expect(stderr).toContain(`${second} has different amounts\n`)
  expect(stderr).not.toContain(third)
  appendFileSync(journal, `${JSON.stringify({ cursor: 'AAAA', payments: [[third, 300]] })}\n`)
  expect(await check()).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(`${third} would be booked twice`) })
})

test('C53: if the cursor has expired, the program says where to continue, and the check what was missed', async () => {
  const missed = await server.sql()<{ id: string; sat: number }[]>`
    SELECT id, amount_sat AS sat FROM gateway_payments WHERE settled_at IS NOT NULL ORDER BY id`
  const { nextCursor } = await merchant.want<{ nextCursor: string }>(200, 'GET', '/events?limit=1')
  const line = (cursor: string, payments: [string, number][] = []): string => `${JSON.stringify({ cursor, payments })}\n`
  writeFileSync(journal, line(nextCursor))
  await server.sql()`UPDATE event_counters SET removed_seq = last_seq WHERE account_id = ${merchant.accountId}`
  const expired = await check()
  expect(expired).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining('cursor_expired') })
  const [, oldest = ''] = /oldestCursor: '([^']+)'/.exec(expired.stderr) ?? []
  appendFileSync(journal, line(oldest))
  const { stderr } = await check()
  expect(stderr.split('\n').slice(0, -1).sort()).toEqual(missed.map(({ id }) => `${id} is only in the CSV`))
  const rows = missed.map(({ id, sat }): [string, number] => [id, sat])
  appendFileSync(journal, line(oldest, rows))
  expect(await check()).toMatchObject({ code: 0 })
})
