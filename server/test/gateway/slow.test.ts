import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { IDLE_CONNECTION_MS } from '../../src/platform/node-agent.ts'
import { fault, type Node, withhold } from '../support/nodes.ts'
import { inTurns, Line, type Merchant, NOWHERE, newMerchant, type Paid } from '../support/payments.ts'
import { eventually, type Server, startServer } from '../support/server.ts'

/** Reliability 10: another account's node is slow. */

const IN_FLIGHT = 100
const ROUNDS = 30
/** Noise of a machine that is also doing other things. A queue or an exhausted pool would cost seconds. */
const NOISE_MS = 1_000

let server: Server
let [slow, quick]: Merchant[] = []
let quickNode: Node
const lines: Line[] = []

beforeAll(async () => {
  // The nodes' events are lost, so that validations must ask the node.
  server = await startServer({
    env: { TRUST_PROXY: '1', LOG_LEVEL: 'warn', NODE_PRICE_SAT_PER_DAY: '0', NODE_CALLBACK_URL: NOWHERE },
  })
  slow = await newMerchant(server)
  quick = await newMerchant(server)
  quickNode = (await quick.owner.createReady()).node
})

afterAll(() => {
  for (const line of lines) line.close()
})

const lineOf = ({ key }: Merchant, connections: number): Line => {
  const line = new Line(server, key.key, connections)
  lines.push(line)
  return line
}

const median = (numbers: number[]): number => numbers.sort((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0

describe.each(['hang', 'slow'])('C34, C38: a node on "%s"', (kind) => {
  test('costs its own customers a 502, and does not affect others', async () => {
    if (!slow || !quick) throw new Error('not begun')
    // A new node each time: a node with many open invoices is asked for lists, and a list would settle the payments below before
    // the node is made slow.
    const slowNode = (await slow.owner.createReady()).node
    const [theirs, ours] = [lineOf(slow, 2 * IN_FLIGHT), lineOf(quick, 4)]
    const wish = { amountSat: 10, description: 'test' }
    const toQuick = { nodeId: quickNode.id, ...wish }
    const sql = server.sql()
    const unpaid = await inTurns(Array.from({ length: 20 }), 5, () => (slow as Merchant).create(slowNode.id))
    await sql`UPDATE gateway_payments SET ask_at = now() + interval '1 hour' WHERE node_id = ${slowNode.id}`
    const stuck = await inTurns(unpaid, 5, (payment) => (slow as Merchant).pay(payment))
    // Otherwise the node would be restarted after five checks without an answer (health-check.ts), and no longer be slow.
    const { giveBack } = await withhold(sql, slowNode)
    const statuses = { theirs: new Set<number>(), ours: new Set<number>() }

    /** Measures creations, and validations that must ask the node, one request after the other. */
    const measure = async (): Promise<{ create: number; validate: number }> => {
      const paid: Paid[] = await inTurns(Array.from({ length: ROUNDS }), 4, () => (quick as Merchant).createPaid(quickNode.id))
      const times = { create: [] as number[], validate: [] as number[] }
      for (const { id, credential } of paid) {
        const before = performance.now()
        statuses.ours.add((await ours.post('/v1/gateway/payments', toQuick)).status)
        const between = performance.now()
        statuses.ours.add((await ours.post(`/v1/gateway/payments/${id}/validate`, { credential })).status)
        times.create.push(between - before)
        times.validate.push(performance.now() - between)
      }
      return { create: median(times.create), validate: median(times.validate) }
    }

    const quiet = [await measure()]
    await fault(server, { node: slowNode }, kind)
    let isOver = false
    let ended = 0
    const keepAsking = async (path: string, json: object): Promise<void> => {
      while (!isOver) {
        statuses.theirs.add((await theirs.post(path, json)).status)
        ended++
      }
    }
    const storm = Array.from({ length: IN_FLIGHT }, (_, at) => {
      const { id, credential } = stuck[at % stuck.length] as Paid
      const validates = keepAsking(`/v1/gateway/payments/${id}/validate`, { credential })
      return Promise.all([validates, keepAsking('/v1/gateway/payments', { nodeId: slowNode.id, ...wish })])
    })
    // A rejection is reported where the storm is awaited; until then, it must not count as unhandled.
    for (const one of storm) one.catch(() => undefined)
    // Wait until the idle connections to the fast node are closed, because the test must show that new ones can be opened.
    await pause(IDLE_CONNECTION_MS + 1_000)
    const busy = await measure()
    isOver = true
    await Promise.all(storm)
    // The node has a hundred requests to finish first.
    await eventually(() => fault(server, { node: slowNode }, 'none').then(() => true), 'the slow node to recover')
    quiet.push(await measure())

    expect(ended).toBeGreaterThanOrEqual(2 * IN_FLIGHT)
    expect([...statuses.theirs]).toEqual([502])
    expect([...statuses.ours].sort()).toEqual([200, 201])
    for (const what of ['create', 'validate'] as const)
      expect(busy[what]).toBeLessThan(2 * Math.max(...quiet.map((one) => one[what])) + NOISE_MS)

    // Once the node has recovered, its own customers are served again.
    await giveBack()
    await slow.owner.until(slowNode.id, 'ready')
    expect((await theirs.post('/v1/gateway/payments', { nodeId: slowNode.id, ...wish })).status).toBe(201)
    for (const payment of stuck) expect((await slow.validate(payment)).status).toBe(200)
  })
})
