import { expect, test } from 'vitest'
import { daemonsIn, type NodeView, Yard } from '../support/crash.ts'
import { type Answer, eventually } from '../support/server.ts'

/** 200 concurrent creations by 20 accounts, on a host that accepts 25 nodes, or 60 with FULL=1. */

const ACCOUNTS = 20
const EACH = 10
const MAX_NODES = process.env.FULL === '1' ? 60 : 25
const SETTLED_MS = 200_000

test('of two hundred concurrent creations, exactly as many succeed as the host accepts', async () => {
  const env = {
    NODE_PRICE_SAT_PER_DAY: '100',
    MAX_NODES: String(MAX_NODES),
    RATE_LIMIT_MAX: '1000000',
    PROVISION_DEADLINE_SECONDS: '190',
  }
  const yard = await new Yard({ env }).start()
  // Three accounts cannot pay for everything they request.
  const keys = await Promise.all(
    Array.from({ length: ACCOUNTS }, async (_, at) => {
      const account = await yard.newAccount({ creditSat: at < 3 ? 250 : 100_000 })
      return yard.newKey(['nodes:read', 'nodes:write'], account.id)
    }),
  )
  const as = (key: string, method: string, path: string): Promise<Answer> =>
    yard.send(method, `/v1/nodes${path}`, { token: key, timeoutMs: SETTLED_MS, ...(method === 'POST' ? { json: {} } : {}) })
  const started = Date.now()
  const answers = await Promise.all(
    keys.flatMap(({ key }) => Array.from({ length: EACH }, async () => ({ key, answer: await as(key, 'POST', '') }))),
  )

  const outcome = ({ status, json }: Answer): string => (status === 202 ? '202' : `${status} ${json().error.code}`)
  const outcomes = new Set(answers.map(({ answer }) => outcome(answer)))
  expect(
    [...outcomes].filter((one) => !['202', '402 insufficient_credit', '409 limit_reached', '429 rate_limited'].includes(one)),
  ).toEqual([])
  const made = answers.filter(({ answer }) => answer.status === 202)
  expect(made.length).toBe(MAX_NODES)
  for (const { key } of keys) {
    const nodes: NodeView[] = (await as(key, 'GET', '')).json().nodes
    const mine = made.filter((one) => one.key === key).map(({ answer }) => answer.json().node.id)
    expect(nodes.map(({ id }) => id).sort()).toEqual(mine.sort())
    expect(new Set(nodes.map(({ name }) => name)).size).toBe(nodes.length)
  }
  for (const { key } of keys.slice(0, 3)) expect((await as(key, 'GET', '')).json().nodes.length).toBeLessThanOrEqual(2)

  const all = async (): Promise<any[]> => (await yard.operator('GET', '/nodes')).json().nodes
  await eventually(async () => (await all()).every(({ status }) => status === 'ready'), 'all nodes to be ready', SETTLED_MS)
  expect(Date.now() - started).toBeLessThan(SETTLED_MS)
  const ids = new Set(made.map(({ answer }) => answer.json().node.id))
  const daemons = daemonsIn(yard.dataDir)
  expect(daemons.filter(({ nodeId }) => ids.has(nodeId))).toHaveLength(MAX_NODES)
  // One more, created by the service: the treasury, which receives the top-ups.
  expect(daemons).toHaveLength(MAX_NODES + 1)

  const deleted = await Promise.all(made.map(({ key, answer }) => as(key, 'DELETE', `/${answer.json().node.id}`)))
  expect(new Set(deleted.map(({ status }) => status))).toEqual(new Set([204]))
  await eventually(() => daemonsIn(yard.dataDir).length === 1, 'all processes but the treasury to be gone')
  for (const { key } of keys) expect((await as(key, 'GET', '')).json().nodes).toEqual([])
})
