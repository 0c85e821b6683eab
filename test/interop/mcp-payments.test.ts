import { createHash } from 'node:crypto'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { McpClient } from 'mppx/mcp/client'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { acceptPayments, chargeForTool, type ToolOptions } from '../../sdk/src/paywall/adapters/mcp.ts'
import { Market } from '../../sdk/test/paywall-harness.ts'
import { lightningOf } from './mppx-lightning.ts'

/** The tools of an MCP server: errors, the capability that announces payments, and x402. */

const SERVER = 'https://jokes.example/mcp'
let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

type Options = Partial<ToolOptions<{ topic: string }>>
const calls: string[] = []

async function connected(options: Options, prepare: (server: McpServer) => McpServer = acceptPayments): Promise<Client> {
  const server = prepare(new McpServer({ name: 'jokes', version: '1.0.0' }))
  // The schema changes what the client has sent.
  const inputSchema = { topic: z.string().transform((topic) => topic.trim()), words: z.number().default(3) }
  server.registerTool(
    'joke',
    { inputSchema },
    chargeForTool({ ...market.terms, tool: 'joke', server: SERVER, ...options }, async ({ topic }: { topic: string }) => {
      calls.push(topic)
      return { content: [{ type: 'text', text: topic }] }
    }),
  )
  const [near, far] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'agent', version: '1.0.0' })
  await Promise.all([server.connect(far), client.connect(near)])
  calls.length = 0
  return client
}
const call = (client: Client, meta: object = {}, topic = ' beer'): Promise<any> =>
  client.callTool({ name: 'joke', arguments: { topic }, _meta: { ...meta } }).catch((error) => error)
const lightning = lightningOf((invoice) => market.wallet.payInvoice({ invoice }))

test('C69: the server announces payments', async () => {
  const client = await connected({})
  expect(client.getServerCapabilities()?.experimental?.payment).toEqual({ methods: ['lightning'], intents: ['charge'] })
})

describe('MPP', () => {
  async function bought(client: Client): Promise<object> {
    const [challenge] = (await call(client)).data.challenges
    const { preimage } = await market.wallet.payInvoice({ invoice: challenge.request.methodDetails.invoice })
    return { 'org.paymentauth/credential': { challenge, payload: { preimage } } }
  }

  test('C69: -32042 without a payment, -32043 with one that is refused and why, -32602 with a malformed one', async () => {
    const client = await connected({})
    const unpaid = await call(client)
    expect([unpaid.code, unpaid.data.challenges.length, unpaid.data.failure]).toEqual([-32042, 1, undefined])
    const paid = await bought(client)
    expect((await call(client, paid)).content).toEqual([{ type: 'text', text: 'beer' }])
    const again = await call(client, paid)
    expect([again.code, again.data.challenges.length]).toEqual([-32043, 1])
    expect(again.data.failure).toEqual({ reason: 'invalid-challenge', detail: expect.stringMatching(/already used/) })
    const malformed = await call(client, { 'org.paymentauth/credential': { challenge: {} } })
    expect([malformed.code, malformed.data.failure.reason]).toEqual([-32602, 'malformed-credential'])
    expect(calls).toEqual(['beer'])
  })

  test('C69: without acceptPayments, McpServer lets only -32042 through, and the challenges are still there', async () => {
    const client = await connected({}, (server) => server)
    const paid = await bought(client)
    await call(client, paid)
    const again = await call(client, paid)
    expect([again.code, again.data.challenges.length, again.data.failure.reason]).toEqual([-32042, 1, 'invalid-challenge'])
  })

  test.each([[['mpp']], [['mpp', 'x402']]])('C69: mppx pays once if %j is offered', async (protocols) => {
    const client = McpClient.wrap(await connected({ protocols: protocols as ('mpp' | 'x402')[] }), { methods: [lightning] })
    const result: any = await client.callTool({ name: 'joke', arguments: { topic: 'beer' } })
    expect([result.content, market.paid, calls]).toEqual([[{ type: 'text', text: 'beer' }], 1, ['beer']])
    expect(result._meta['org.paymentauth/receipt']).toMatchObject({ method: 'lightning', status: 'success' })
  })
})

test('C69: a free tool needs no payment', async () => {
  const client = await connected({ free: ({ topic }) => topic === 'water' })
  expect((await call(client, {}, 'water')).content).toEqual([{ type: 'text', text: 'water' }])
  expect((await call(client, {}, 'wine')).code).toBe(-32042)
})

describe('x402', () => {
  const hashOf = (args: object): string => {
    const domain = 'x402:exact:lnbtc:bolt11:mcp:1'
    // The members are in the order of the canonical form.
    const binding = { arguments: args, domain, metadata: [], method: 'tools/call', name: 'joke', server: SERVER }
    return createHash('sha256').update(JSON.stringify(binding)).digest('hex')
  }
  async function paid(required: any): Promise<object> {
    const [accepted] = required.accepts
    const { preimage } = await market.wallet.payInvoice({ invoice: accepted.extra.invoice })
    return { 'x402/payment': { x402Version: 2, accepted, payload: { preimage } } }
  }

  test('C69: what is required is in the result, bound to the call as it was sent; it buys one call', async () => {
    const client = await connected({ protocols: ['x402'] })
    const unpaid = await call(client)
    expect([unpaid.isError, unpaid._meta]).toEqual([true, undefined])
    expect(JSON.parse(unpaid.content[0].text)).toEqual(unpaid.structuredContent)
    expect(unpaid.structuredContent).toMatchObject({
      x402Version: 2,
      resource: { url: 'mcp://tool/joke' },
      accepts: [{ extra: { requestBindingProfile: 'mcp:1', requestBindingParams: { server: SERVER, metadata: [] } } }],
    })
    expect(unpaid.structuredContent.accepts[0].extra.requestHash).toBe(hashOf({ topic: ' beer' }))
    const payment = await paid(unpaid.structuredContent)
    const other = await call(client, payment, 'wine')
    // No new challenge: the payment is for another call, and still unused.
    expect([other.isError, other.structuredContent, other.content[0].text]).toEqual([
      true,
      undefined,
      expect.stringMatching(/made for a different request/),
    ])
    const result = await call(client, { ...payment, progressToken: 7 })
    expect([result.content, calls]).toEqual([[{ type: 'text', text: 'beer' }], ['beer']])
    expect(result._meta['x402/payment-response']).toMatchObject({ success: true })
    expect((await call(client, payment)).structuredContent.error).toBe('duplicate_settlement')
    expect(calls).toEqual(['beer'])
  })

  test('C69: both payments at once are refused, and a malformed one gets a new challenge', async () => {
    const client = await connected({ protocols: ['mpp', 'x402'] })
    const unpaid = await call(client)
    const payment = await paid(unpaid.structuredContent)
    const [challenge] = unpaid._meta['org.paymentauth/payment-required'].challenges
    const two = await call(client, { ...payment, 'org.paymentauth/credential': { challenge, payload: { preimage: 'x' } } })
    expect([two.isError, two.structuredContent, two.content[0].text]).toEqual([
      true,
      undefined,
      expect.stringMatching(/more than one/),
    ])
    expect((await call(client, { 'x402/payment': 'nonsense' })).structuredContent.error).toBe('invalid_payload')
    expect((await call(client, payment)).content).toEqual([{ type: 'text', text: 'beer' }])
  })
})
