import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { acceptPayments, chargeForPrompt, chargeForResource } from '../../sdk/src/paywall/adapters/mcp.ts'
import { Market } from '../../sdk/test/paywall-harness.ts'

/** Payments for the resources and prompts of an MCP server. */

let market: Market
let served: string[]
let isBroken: boolean
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(async () => {
  await market.renew()
  served = []
  isBroken = false
})

function serve(text: string): string {
  if (isBroken) throw new Error('broken')
  served.push(text)
  return text
}

async function connected(prepare: (server: McpServer) => McpServer = acceptPayments, more = {}): Promise<Client> {
  const terms = { ...market.terms, ...more }
  const server = prepare(new McpServer({ name: 'stories', version: '1.0.0' }))
  const read = async (uri: URL) => ({ contents: [{ uri: uri.href, text: serve(uri.href) }] })
  server.registerResource('story', 'stories://1', {}, chargeForResource(terms, read))
  const template = new ResourceTemplate('poems://{id}', { list: undefined })
  const amountSat = (uri: URL): number => uri.href.length
  server.registerResource(
    'poem',
    template,
    {},
    chargeForResource({ ...terms, amountSat }, async (uri: URL, variables: Record<string, unknown>) => ({
      contents: [{ uri: uri.href, text: serve(String(variables.id)) }],
    })),
  )
  server.registerPrompt(
    'review',
    { argsSchema: { code: z.string() } },
    chargeForPrompt({ prompt: 'review', ...terms, amountSat: ({ code }) => code.length }, async ({ code }: { code: string }) => ({
      messages: [{ role: 'user', content: { type: 'text', text: serve(code) } }],
    })),
  )
  const [near, far] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'agent', version: '1.0.0' })
  await Promise.all([server.connect(far), client.connect(near)])
  return client
}

type Ask = (client: Client, meta?: object, other?: boolean) => Promise<any>
const KINDS: [name: string, ask: Ask, goods: string, amountSat: number][] = [
  [
    'resource',
    (client, meta = {}, other) => client.readResource({ uri: other ? 'poems://7' : 'stories://1', _meta: { ...meta } }),
    'stories://1',
    10,
  ],
  [
    'resource of a template',
    (client, meta = {}, other) => client.readResource({ uri: other ? 'poems://8' : 'poems://7', _meta: { ...meta } }),
    '7',
    9,
  ],
  [
    'prompt',
    (client, meta = {}, other) =>
      client.getPrompt({ name: 'review', arguments: { code: other ? 'twelve chars' : 'two  words' }, _meta: { ...meta } }),
    'two  words',
    10,
  ],
]

describe.each(KINDS)('a %s', (_name, ask, goods, amountSat) => {
  const caught: Ask = (...args) => ask(...args).catch((error) => error)
  async function bought(client: Client): Promise<object> {
    const [challenge] = (await caught(client)).data.challenges
    const { preimage } = await market.wallet.payInvoice({ invoice: challenge.request.methodDetails.invoice })
    return { 'org.paymentauth/credential': { challenge, payload: { preimage } } }
  }

  test.each([
    ['with', acceptPayments],
    ['without', (server: McpServer) => server],
  ])(
    'C69: %s acceptPayments: -32042 without a payment, one delivery with one, then -32043; -32602 if it is malformed',
    async (_how, prepare) => {
      const client = await connected(prepare)
      const unpaid = await caught(client)
      expect([unpaid.code, unpaid.data.httpStatus, unpaid.data.challenges.length]).toEqual([-32042, 402, 1])
      expect([unpaid.data.failure, unpaid.data.problem.amountSat]).toEqual([undefined, amountSat])
      const paid = await bought(client)
      const result = await ask(client, paid)
      expect(result._meta['org.paymentauth/receipt']).toMatchObject({ method: 'lightning', status: 'success' })
      const again = await caught(client, paid)
      expect([again.code, again.data.challenges.length, again.data.failure.reason]).toEqual([-32043, 1, 'invalid-challenge'])
      const malformed = await caught(client, { 'org.paymentauth/credential': { challenge: {} } })
      expect([malformed.code, malformed.data.failure.reason]).toEqual([-32602, 'malformed-credential'])
      expect(served).toEqual([goods])
    },
  )

  test('C69: a payment for one does not open another, and is not used up by it', async () => {
    const client = await connected()
    const paid = await bought(client)
    expect((await caught(client, paid, true)).code).toBe(-32043)
    await ask(client, paid)
    expect(served).toEqual([goods])
  })

  test('selling 3: a handler that throws has delivered nothing: the same payment is served again', async () => {
    const client = await connected()
    const paid = await bought(client)
    isBroken = true
    expect((await caught(client, paid)).message).toMatch(/broken/)
    isBroken = false
    await ask(client, paid)
    expect(served).toEqual([goods])
  })

  test('C69: while payments cannot be verified, it is an internal error without a challenge', async () => {
    const paid = await bought(await connected())
    const client = await connected(acceptPayments, { patienceMs: 500 })
    market.wire.close()
    const error = await caught(client, paid)
    expect([error.code, error.data.httpStatus, error.data.challenges]).toEqual([-32603, 503, []])
  })
})
