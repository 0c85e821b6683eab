import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { ROOMY } from '../../cli/test/harness.ts'
import { REPORT, sell as sellX402 } from '../../server/test/gateway/x402-sales.ts'
import { signUp } from '../../server/test/support/dashboard.ts'
import { charge, credentialOf, invoiceIn, pay, untilSettled } from '../../server/test/support/gateway.ts'
import { type Created, Owner } from '../../server/test/support/nodes.ts'
import { eventually, type Server, startServer, temporaryDirectory } from '../../server/test/support/server.ts'
import { type OpenApi, referencePages } from '../../site/src/reference.ts'
import { openReceiver } from '../../testing/receiver.ts'
import { Shell } from '../../testing/shell.ts'
import { root } from '../source-graph.ts'

/** Every curl of the API reference, with ids, credentials and addresses of a real service in place of the examples. */

const api = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8')) as OpenApi
type Example = { endpoint: string; command: string; status: string }
const pages = referencePages(api)
const examples = pages
  .flatMap(({ text }) => text.split(/^## /m))
  .flatMap((text): Example[] => {
    const [, endpoint] = /^`([A-Z]+ \/\S+)`$/m.exec(text) ?? []
    const [, command = ''] = /```sh\n([\s\S]*?)\n```/.exec(text) ?? []
    const [, status = ''] = /^\*\*Response (\d+)\.\*\*/m.exec(text) ?? []
    return endpoint === undefined ? [] : [{ endpoint, command, status }]
  })
const NOT_RUN = [
  // A new node runs the latest version, so there is nothing to update to without a restart of the service with another catalog.
  'POST /v1/nodes/{nodeId}/update',
  // Its response does not end. test/docs/typed.test.ts runs the stream of docs/events.md.
  'GET /v1/events/stream',
]

let server: Server
let owner: Owner
let shop: Created
let shell: Shell

beforeAll(async () => {
  server = await startServer({ env: ROOMY })
  owner = new Owner(server, await server.newKey(['nodes:write', 'gateway:write', 'events:read', 'webhooks:write']))
  shop = await owner.createReady({ name: 'shop' })
  const env = { PATH: process.env.PATH ?? '', SERVICE_API_KEY: owner.key.key, OPERATOR_TOKEN: server.operatorToken }
  shell = new Shell(temporaryDirectory(), env)
  // The status follows the body, on a line of its own.
  await shell.type(`curl() { command curl -s -w '\\n%{http_code}' "$@"; }`)
})

const hasRun = new Set<string>()

/** Runs the example with these values in place of its own, and returns the body of a response that has the documented status. */
async function run(endpoint: string, values: [string, string][] = []): Promise<any> {
  const example = examples.find((one) => one.endpoint === endpoint)
  if (!example) throw new Error(`${endpoint} is not in the reference`)
  hasRun.add(endpoint)
  for (const [value] of values) expect(example.command).toContain(value)
  const command = values.reduce((text, [value, own]) => text.replaceAll(value, own), example.command)
  const text = await shell.type(command.replaceAll('http://127.0.0.1:8402', server.url))
  const [body, status] = [text.slice(0, text.lastIndexOf('\n')), text.slice(text.lastIndexOf('\n') + 1)]
  expect(`${endpoint}: ${status} ${status === example.status ? '' : body}`).toBe(`${endpoint}: ${example.status} `)
  return body.startsWith('{') ? JSON.parse(body) : body
}

const NODE = 'node_01hgw2bbg0000000000a'
const PAYMENT = 'pay_01hgw2bbg0000000000a'
const HOOK = 'hook_01hgw2bbg0000000000a'
const ACCOUNT = 'acct_01hgw2bbg0000000000a'
const KEY = 'key_01hgw2bbg0000000000a'
const CREDENTIAL = 'Payment eyJjaGFsbGVuZ2UiOnt9fQ'
const HASH = '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018'

test('the overview, and health', async () => {
  const [, command = ''] = /```sh\n([\s\S]*?)\n```/.exec(pages[0]?.text ?? '') ?? []
  expect(await shell.type(command.replace('http://127.0.0.1:8402', server.url))).toMatch(/\n200$/)
  for (const endpoint of ['GET /healthz', 'GET /readyz']) await run(endpoint)
})

test('nodes', async () => {
  const { node } = await run('POST /v1/nodes')
  await owner.until(node.id, 'ready')
  const own: [string, string][] = [[NODE, node.id]]
  expect((await run('GET /v1/nodes')).nodes).toHaveLength(2)
  expect(await run('GET /v1/nodes/{nodeId}', own)).toMatchObject({ id: node.id })
  expect(await run('PATCH /v1/nodes/{nodeId}', own)).toMatchObject({ name: 'Shop' })
  await run('GET /v1/nodes/{nodeId}/updates', own)
  for (const action of ['restart', 'stop', 'start']) {
    await run(`POST /v1/nodes/{nodeId}/${action}`, own)
    await owner.until(node.id, action === 'stop' ? 'stopped' : 'ready')
  }
  await run('GET /operator/v1/nodes')
  await run('DELETE /v1/nodes/{nodeId}', own)
  await eventually(async () => await run('POST /operator/v1/nodes/{id}/undelete', own), 'the deletion to finish')
})

test('gateway: payments, and what becomes of them', async () => {
  const node: [string, string] = [NODE, shop.node.id]
  await run('POST /v1/gateway/payments', [node])
  await run('POST /v1/gateway/payments/batch', [node])
  expect((await run('GET /v1/gateway/payments')).payments).toHaveLength(3)
  expect(await run('GET /v1/gateway/payments.csv')).toMatch(/^id,/)

  const sold = async () => {
    const payment = await charge(owner, shop, { amountSat: 21, description: 'GET /joke' })
    const credential = credentialOf(payment, await pay(server, payment))
    await untilSettled(owner, payment)
    return [
      [PAYMENT, payment.id],
      [CREDENTIAL, credential],
    ] as [[string, string], [string, string]]
  }
  const joke = await sold()
  expect(await run('GET /v1/gateway/payments/{id}', [joke[0]])).toMatchObject({ id: joke[0][1] })
  expect(await run('POST /v1/gateway/payments/{id}/validate', joke)).toMatchObject({ status: 'paid' })
  await run('POST /v1/gateway/payments/{id}/redeem', joke)
  await run('POST /v1/gateway/payments/{id}/release', [joke[0]])
  const next = await sold()
  await run('POST /v1/gateway/payments/{id}/redeem', next)
  await run('POST /v1/gateway/payments/delivered', [next[0]])
})

test('gateway: x402', async () => {
  await run('GET /v1/gateway/x402/supported')
  const sale = async () => {
    const one = await sellX402(owner, shop, undefined, { amountSat: 25 })
    await untilSettled(owner, one.payment)
    return one
  }
  const bound = async (): Promise<[string, string][]> => [
    ['eyJ4NDAyVmVyc2lvbiI6Mn0=', (await sale()).credential],
    [HASH, REPORT],
  ]
  await run('POST /v1/gateway/payments/validate', await bound())
  await run('POST /v1/gateway/payments/redeem', await bound())
  for (const path of ['verify', 'settle']) {
    const { accepted, preimage } = await sale()
    const { command = '' } = examples.find(({ endpoint }) => endpoint.endsWith(`x402/${path}`)) ?? {}
    const body = JSON.parse(/-d '(.*)'$/s.exec(command)?.[1] ?? '')
    const own = {
      ...body,
      paymentPayload: { ...body.paymentPayload, accepted, payload: { preimage } },
      paymentRequirements: accepted,
    }
    const answer = await run(`POST /v1/gateway/x402/${path}`, [[JSON.stringify(body), JSON.stringify(own)]])
    expect(answer).toMatchObject(path === 'verify' ? { isValid: true } : { success: true })
  }
})

test('events and webhooks', async () => {
  await run('GET /v1/api-key')
  await run('GET /v1/events')
  const receiver = await openReceiver()
  const { id } = await run('POST /v1/webhooks', [['https://shop.example/hooks/boltyard', receiver.url]])
  const own: [string, string][] = [[HOOK, id]]
  expect(await run('GET /v1/webhooks/{webhookId}', own)).toMatchObject({ url: receiver.url })
  expect((await run('GET /v1/webhooks')).webhooks).toHaveLength(1)
  expect(await run('POST /v1/webhooks/{webhookId}/test', own)).toMatchObject({ status: 200 })
  const payment = await charge(owner, shop)
  await pay(server, payment)
  await receiver.until(2)
  const { deliveries } = await eventually(async () => {
    const page = await run('GET /v1/webhooks/{webhookId}/deliveries', own)
    return page.deliveries.some(({ status }: { status: string }) => status === 'delivered') && page
  }, 'the delivery')
  const delivery: [string, string] = ['dlv_01hgw2bbg0000000000a', deliveries[0].id]
  await run('POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver', [...own, delivery])
  await run('POST /v1/webhooks/{webhookId}/replay', own)
  await run('POST /v1/webhooks/{webhookId}/rotate-secret', own)
  await run('PATCH /v1/webhooks/{webhookId}', own)
  await run('DELETE /v1/webhooks/{webhookId}', own)
})

test('the operator’s calls', async () => {
  const { id } = await run('POST /operator/v1/accounts')
  const account: [string, string] = [ACCOUNT, id]
  for (const path of ['accounts', 'stats', 'stats/days', 'hosts', 'versions', 'background-work'])
    await run(`GET /operator/v1/${path}`)
  await run('GET /operator/v1/accounts/{id}', [account])
  await run('POST /operator/v1/accounts/{id}/credit', [account])
  const key = await run('POST /operator/v1/accounts/{id}/keys', [account])
  const both: [string, string][] = [account, [KEY, key.id]]
  await run('POST /operator/v1/accounts/{id}/keys/{keyId}/rotate', both)
  await run('PATCH /operator/v1/accounts/{id}/keys/{keyId}', both)
  await run('DELETE /operator/v1/accounts/{id}/keys/{keyId}', both)
  await run('GET /operator/v1/accounts/{id}/activity', [account])
  await run('POST /operator/v1/accounts/{id}/sign-in-link', [account])
  await run('POST /operator/v1/invitations')
  const { email } = await signUp(server)
  await run('POST /operator/v1/sign-in-links', [['ann@example.com', email]])
})

test('the sandbox', async () => {
  const own: [string, string][] = [[NODE, shop.node.id]]
  await run('POST /operator/v1/sandbox/nodes/{id}/fund', own)
  const payment = await charge(owner, shop)
  await run('POST /operator/v1/sandbox/pay', [['…', invoiceIn(payment.challenge)]])
  await run('POST /operator/v1/sandbox/nodes/{id}/fault', own)
})

test('no example was left out', () => {
  expect(examples.length).toBeGreaterThan(50)
  expect(examples.map(({ endpoint }) => endpoint).filter((endpoint) => !hasRun.has(endpoint))).toEqual(NOT_RUN)
})
