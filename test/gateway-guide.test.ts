import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Wire } from '../sdk/test/wire.ts'
import { credentialOf, newMerchant, pay } from '../server/test/support/gateway.ts'
import { eventually, freePort, type Server, startServer, temporaryDirectory } from '../server/test/support/server.ts'

/** The shop of docs/gateway.md, unchanged, and customers who try to get more than they paid for. */

const guide = readFileSync(fileURLToPath(new URL('../docs/gateway.md', import.meta.url)), 'utf8')
const [, program = ''] = /```js\n([\s\S]*?)```/.exec(guide) ?? []

let server: Server
let wire: Wire
let shop: ChildProcess
let url: string

beforeAll(async () => {
  // Nodes are free, so no treasury node has to start.
  server = await startServer({ env: { NODE_PRICE_SAT_PER_DAY: '0' } })
  wire = await new Wire(server.url).open()
  const merchant = await newMerchant(server)
  const { node } = await merchant.createReady()
  const file = join(temporaryDirectory(), 'shop.mjs')
  writeFileSync(file, program)
  const port = String(await freePort())
  url = `http://127.0.0.1:${port}`
  const env = { SERVICE_BASE_URL: wire.baseUrl, SERVICE_API_KEY: merchant.key.key, NODE_ID: node.id, PORT: port }
  shop = spawn(process.execPath, [file], { env, stdio: 'inherit' })
  await eventually(async () => (await fetch(url).catch(() => undefined))?.status === 404, 'the shop to open')
})

afterAll(() => shop?.kill())

async function bought(path: string): Promise<string> {
  const response = await fetch(url + path)
  expect(response.status).toBe(402)
  const challenge = response.headers.get('www-authenticate') ?? ''
  return credentialOf({ protocol: 'mpp', challenge }, await pay(server, { challenge }))
}

const visit = (path: string, authorization: string): Promise<Response> => fetch(url + path, { headers: { authorization } })

test('D2: a cheap credential does not open the expensive resource, is not used up by the attempt, and opens its own once', async () => {
  const [cheap, dear] = [await bought('/cheap'), await bought('/dear')]
  const attempt = await visit('/dear', cheap)
  expect([attempt.status, await attempt.text()]).toEqual([402, ''])
  const [first, again] = [await visit('/cheap', cheap), await visit('/cheap', cheap)]
  expect([first.status, await first.text(), again.status]).toEqual([200, 'goods of /cheap\n', 402])
  expect(first.headers.get('payment-receipt')).toEqual(expect.any(String))
  expect((await visit('/cheap', dear)).status).toBe(402)
  const own = await visit('/dear', dear)
  expect([own.status, await own.text()]).toEqual([200, 'goods of /dear\n'])
})

test('C45: if the response to a redemption is lost, the customer is served, and not asked to pay again', async () => {
  const credential = await bought('/dear')
  wire.faultsOn = /redeem/
  wire.faults = ['lose answer']
  const served = await visit('/dear', credential)
  expect([served.status, await served.text(), wire.faults]).toEqual([200, 'goods of /dear\n', []])
})

test('D2: a malformed credential gets a challenge', async () => {
  for (const nonsense of ['Payment x', 'Bearer x', 'Payment bnVsbA']) expect((await visit('/cheap', nonsense)).status).toBe(402)
})

test('D2: every guide that shows redeem shows expect', () => {
  const pages = ['../docs/gateway.md', '../llms.txt'].map((page) => readFileSync(new URL(page, import.meta.url), 'utf8'))
  for (const page of pages) {
    expect(page).toContain('/redeem')
    for (const [block] of page.matchAll(/\/redeem`[^\n]*\n?[^\n]*\n?[^\n]*/g)) expect(block).toContain('expect')
  }
})
