import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server as HttpServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RECEIVED_PAGE } from '../../src/lightning/phoenixd/received.ts'
import type { Database } from '../../src/store/db.ts'
import { redirectNode } from '../support/nodes.ts'
import { inTurns, type Merchant, NOWHERE, newMerchant, type Payment } from '../support/payments.ts'
import { eventually, PROCESS, type Server, startServer } from '../support/server.ts'

/** C40 for a node with many open invoices, whose events are all lost. */

let server: Server
let sql: Database
let merchant: Merchant
const counters: HttpServer[] = []

beforeAll(async () => {
  server = await startServer({
    command: PROCESS,
    env: { LOG_LEVEL: 'warn', NODE_PRICE_SAT_PER_DAY: '0', NODE_CALLBACK_URL: NOWHERE },
  })
  sql = server.sql()
  merchant = await newMerchant(server)
})

afterAll(() => {
  for (const counter of counters) {
    counter.closeAllConnections()
    counter.close()
  }
})

type Watched = {
  nodeId: string
  /** How many requests were for a list, and how many about a single invoice. */
  lists: number
  singles: number
  /** What is answered instead of the node's list. */
  list?: { status: number; body: string }
  /** What is answered instead of one page of the list; undefined is the node's own page. */
  page?: (parameters: URLSearchParams) => Promise<string | undefined>
}

/** A node behind a server that counts the requests to it. */
async function watchedNode(): Promise<Watched> {
  const { node } = await merchant.owner.createReady()
  const watched: Watched = { nodeId: node.id, lists: 0, singles: 0 }
  let port = 0
  const counter = createServer(async (incoming, response) => {
    const { url: path = '', method, headers } = incoming
    const isList = path.startsWith('/payments/incoming?')
    if (isList) watched.lists++
    const page = isList ? await watched.page?.(new URL(path, 'http://node').searchParams) : undefined
    if (page !== undefined) return void response.end(page)
    if (path.startsWith('/payments/incoming/')) watched.singles++
    const onward = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (real) => {
      // Checked here, after the node's response, so that it also applies to a list that was requested before `watched.list` was set.
      if (isList && watched.list) {
        real.resume()
        return void response.writeHead(watched.list.status).end(watched.list.body)
      }
      response.writeHead(real.statusCode ?? 0, real.headers)
      real.pipe(response)
    })
    onward.on('error', () => response.destroy())
    incoming.pipe(onward)
  }).listen(0, '127.0.0.1')
  await once(counter, 'listening')
  counters.push(counter)
  port = redirectNode(server, node, (counter.address() as AddressInfo).port)
  return watched
}

const due = (payments: Payment[]): Promise<unknown> =>
  sql`UPDATE gateway_payments SET ask_at = now() WHERE id = ANY (${payments.map(({ id }) => id)}) AND settled_at IS NULL`

/** Whether the payments are left to the lists: the node is not asked about them one by one until a minute after they expire. */
const areListed = async (payments: Payment[]): Promise<boolean> => {
  const [row] = await sql<{ listed: number }[]>`
    SELECT count(*)::int AS listed FROM gateway_payments
    WHERE id = ANY (${payments.map(({ id }) => id)}) AND ask_at = expires_at + interval '1 minute'`
  return row?.listed === payments.length
}

const isSettled = async ({ id }: Payment): Promise<boolean> => (await merchant.get(id)).settledAt !== null

async function listedNode(): Promise<{ node: Watched; paid: Payment; unpaid: Payment; pay: () => ReturnType<Merchant['pay']> }> {
  const node = await watchedNode()
  const payments = await inTurns(Array.from({ length: 12 }), 4, () => merchant.create(node.nodeId))
  await due(payments)
  await eventually(() => node.lists > 0, 'the first list')
  await due(payments)
  await eventually(() => areListed(payments), 'the invoices to be left to the lists')
  node.singles = 0
  const [paid, unpaid] = payments as [Payment, Payment]
  return { node, paid, unpaid, pay: () => merchant.pay(paid) }
}

test('C40: a node’s lists show which invoices are settled, and when, and it is no longer asked about each', async () => {
  const { node, paid, unpaid, pay } = await listedNode()
  const beforeSeconds = Math.floor(Date.now() / 1000) - 1
  const { credential } = await pay()
  await eventually(() => isSettled(paid), 'the settlement')
  const shown = await merchant.get(paid.id)
  expect(shown).toMatchObject({ status: 'payment_required', paidAt: null })
  expect(shown.settledAt).toBeGreaterThanOrEqual(beforeSeconds)
  const enough = node.lists + 2
  await eventually(() => node.lists >= enough, 'lists with the same payment')
  expect(await sql`SELECT 1 FROM activity WHERE target = ${paid.id} AND action = 'payment.settled'`).toHaveLength(1)
  expect(await isSettled(unpaid)).toBe(false)
  expect(node.singles).toBe(0)
  expect((await merchant.validate({ ...paid, credential })).status).toBe(200)
})

test('C40: after kill -9, the store knows which invoices were left to lists', async () => {
  const { node, paid, pay } = await listedNode()
  await server.restart('SIGKILL')
  await pay()
  await eventually(() => isSettled(paid), 'the settlement')
  expect(node.singles).toBe(0)
})

test('C40: a node that answers with an error instead of a list is asked about each invoice again', async () => {
  const { node, paid, unpaid, pay } = await listedNode()
  node.list = { status: 500, body: '' }
  await pay()
  await eventually(() => isSettled(paid), 'the settlement')
  expect(await areListed([unpaid])).toBe(false)
})

test('C40: a settlement that is missing from the lists is found after the invoice expires', async () => {
  const { node, paid, pay } = await listedNode()
  node.list = { status: 200, body: '[]' }
  await pay()
  const enough = node.lists + 2
  await eventually(() => node.lists >= enough, 'lists without it')
  expect(await isSettled(paid)).toBe(false)
  await sql`UPDATE gateway_payments SET expires_at = now() - interval '1 minute', ask_at = now() WHERE id = ${paid.id}`
  await eventually(() => isSettled(paid), 'the settlement')
})

test('C40: a list that takes longer than one turn of 10 s continues in the next one, and is read to its end', async () => {
  const { node, paid, pay } = await listedNode()
  await pay()
  // Two slow pages of newer payments. The node's own list follows only after them.
  const newestMs = Date.now() + 60_000
  const pageFrom = (fromMs: number): string =>
    JSON.stringify(
      Array.from({ length: RECEIVED_PAGE }, (_, at) => ({
        paymentHash: createHash('sha256')
          .update(`${fromMs - at}`)
          .digest('hex'),
        isPaid: true,
        receivedSat: 1,
        completedAt: fromMs - at,
      })),
    )
  node.page = async (parameters) => {
    const toMs = Number(parameters.get('to') ?? newestMs)
    if (toMs <= newestMs - 2 * (RECEIVED_PAGE - 1)) return undefined
    await new Promise((resolve) => setTimeout(resolve, 6_000))
    return pageFrom(toMs)
  }
  await eventually(() => isSettled(paid), 'the settlement')
  expect(node.singles).toBe(0)
})
