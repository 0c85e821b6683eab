import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { Receipt } from 'mppx'
import { Mppx } from 'mppx/client'
import { McpClient } from 'mppx/mcp/client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { chargeForTool } from '../../sdk/src/paywall/adapters/mcp.ts'
import { Market } from '../../sdk/test/paywall-harness.ts'
import { JOKE, SHOPS } from '../../sdk/test/paywall-shops.ts'
import { openProxy } from '../../sdk/test/shops/proxy.ts'
import { lightningOf } from './mppx-lightning.ts'

/** The protocol's reference client against the paywall: over HTTP, and for the tools of an MCP server. */

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => {
  market.paid = 0
})

const lightning = lightningOf((invoice) => market.wallet.payInvoice({ invoice }))

test.each([...SHOPS, ['the proxy', openProxy] as const])(
  'MPP 57: %s: an mppx client pays once, even with two offers, and reads the receipt',
  async (_name, open) => {
    for (const protocol of ['mpp', 'both'] as const) {
      market.paid = 0
      const shop = await open({ ...market.terms, protocol })
      const answer = await Mppx.create({ methods: [lightning], polyfill: false }).fetch(shop.url('/jokes/1'))
      expect([answer.status, await answer.json(), market.paid]).toEqual([200, { joke: JOKE, id: '1' }, 1])
      expect(Receipt.fromResponse(answer)).toMatchObject({ method: 'lightning', status: 'success' })
    }
  },
)

describe('a tool of an MCP server', () => {
  const servers: { close: () => unknown }[] = []
  afterAll(() => {
    for (const server of servers) server.close()
  })

  const calls: string[] = []
  let url: URL

  function makeServer(): McpServer {
    const server = new McpServer({ name: 'jokes', version: '1.0.0' })
    // The same tool, for the same payments, in a shop that gives up sooner.
    for (const [name, patience] of [
      ['joke', {}],
      ['hurried_joke', { patienceMs: 1_000 }],
    ] as const)
      server.registerTool(
        name,
        { inputSchema: { topic: z.string() } },
        chargeForTool(
          { ...market.terms, ...patience, tool: 'joke', amountSat: ({ topic }) => topic.length },
          async ({ topic }) => {
            calls.push(topic)
            if (topic === 'throws') throw new Error('no joke')
            if (topic === 'fails') return { isError: true, content: [{ type: 'text', text: 'no joke' }] }
            return { content: [{ type: 'text', text: JOKE }], _meta: { mood: 'dry' } }
          },
        ),
      )
    server.registerTool(
      'pun',
      {},
      chargeForTool({ ...market.terms, tool: 'pun' }, async () => ({ content: [{ type: 'text', text: 'pun' }] })),
    )
    return server
  }

  /** Streamable HTTP, one session after the other: each client gets its own transport to the same tools. */
  beforeAll(async () => {
    const sessions = new Map<string, StreamableHTTPServerTransport>()
    const tools = makeServer()
    const http = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
      const known = sessions.get(String(request.headers['mcp-session-id']))
      if (known) return known.handleRequest(request, response)
      const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, transport),
      })
      await tools.close()
      await tools.connect(transport as Parameters<McpServer['connect']>[0])
      await transport.handleRequest(request, response)
    }).listen(0, '127.0.0.1')
    await once(http, 'listening')
    servers.push(http)
    url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`)
  })

  async function connected(): Promise<Client> {
    const client = new Client({ name: 'agent', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(url) as Parameters<Client['connect']>[0])
    servers.push(client)
    return client
  }
  const paying = async (): Promise<any> => McpClient.wrap(await connected(), { methods: [lightning] })
  const joke = (topic: string) => ({ name: 'joke', arguments: { topic } })

  test('without a payment: JSON-RPC error -32042, whose data has the challenge; nothing is called', async () => {
    const error = await (await connected()).callTool(joke('beer')).catch((reason) => reason)
    expect(error.code).toBe(-32042)
    expect(error.data).toMatchObject({
      httpStatus: 402,
      challenges: [
        {
          method: 'lightning',
          intent: 'charge',
          request: { amount: '4', currency: 'sat', description: 'tools/call joke' },
          expires: expect.any(String),
        },
      ],
      problem: { type: 'https://paymentauth.org/problems/payment-required', status: 402 },
    })
    expect([calls, market.paid]).toEqual([[], 0])
    // D15: the message is about MCP, which has no headers.
    expect(error.message).toMatch(/_meta\["org\.paymentauth\/credential"\]/)
    expect(error.message).not.toMatch(/WWW-Authenticate|Authorization/)
  })

  test('mppx pays for it, the result is the tool’s own, and has the receipt', async () => {
    const result = await (await paying()).callTool(joke('beer'))
    expect(result).toMatchObject({
      content: [{ type: 'text', text: JOKE }],
      _meta: {
        mood: 'dry',
        'org.paymentauth/receipt': { method: 'lightning', status: 'success', challengeId: expect.any(String) },
      },
      receipt: { reference: expect.stringMatching(/^[0-9a-f]{64}$/) },
    })
    expect([calls.splice(0), market.paid]).toEqual([['beer'], 1])
  })

  test('a tool without arguments can be paid for too', async () => {
    const result = await (await paying()).callTool({ name: 'pun' })
    expect([result.content, market.paid]).toEqual([[{ type: 'text', text: 'pun' }], 1])
  })

  /** The credential of a customer who has paid, as mppx puts it into a call. */
  async function bought(call: { name: string; arguments?: object }): Promise<unknown> {
    const client = await connected()
    const error = await client.callTool(call as any).catch((reason) => reason)
    const [challenge] = error.data.challenges
    const { preimage } = await market.wallet.payInvoice({ invoice: challenge.request.methodDetails.invoice })
    return { challenge, payload: { preimage } }
  }
  const callWith = async (credential: unknown, call: { name: string; arguments?: object }): Promise<any> =>
    (await connected())
      .callTool({ ...call, _meta: { 'org.paymentauth/credential': credential } } as any)
      .catch((reason) => reason)

  test('C45: one payment buys one call, and none of another tool or at another price', async () => {
    const credential = await bought(joke('beer'))
    expect((await callWith(credential, { name: 'pun' })).code).toBe(-32042)
    expect((await callWith(credential, joke('wine cellar'))).code).toBe(-32042)
    expect((await callWith(credential, joke('beer'))).content).toEqual([{ type: 'text', text: JOKE }])
    const again = await callWith(credential, joke('beer'))
    expect([again.code, again.data.problem.detail]).toEqual([-32042, expect.stringMatching(/already used/)])
    expect(calls.splice(0)).toEqual(['beer'])
  })

  test('C45: a call that fails, by its result or by throwing, does not use up the payment, and has no receipt', async () => {
    for (const topic of ['fails', 'throws']) {
      const credential = await bought(joke(topic))
      for (let time = 0; time < 2; time++) {
        const result = await callWith(credential, joke(topic))
        expect([result.isError, result._meta]).toEqual([true, undefined])
      }
      expect(calls.splice(0)).toEqual([topic, topic])
    }
  })

  test.each([[null], ['text'], [{}], [{ challenge: null }], [{ challenge: { request: [] }, payload: {} }]])(
    'credential %j: is refused with a fresh challenge',
    async (credential) => {
      const error = await callWith(credential, joke('beer'))
      expect([error.code, error.data.problem.type]).toEqual([-32042, expect.stringMatching(/malformed-credential$/)])
    },
  )

  test('the gateway is down: an error for the model to read, without a challenge', async () => {
    const credential = await bought(joke('beer'))
    market.wire.faults = Array(100).fill('cut')
    const result = await callWith(credential, { ...joke('beer'), name: 'hurried_joke' })
    market.wire.faults = []
    expect(result).toEqual({ isError: true, content: [{ type: 'text', text: expect.stringMatching(/Do not pay again/) }] })
    expect((await callWith(credential, joke('beer'))).isError).toBeUndefined()
    expect(calls.splice(0)).toEqual(['beer'])
  })
})
