import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Hopeless } from '../../../testing/eventually.ts'
import { hasRedis, TestRedis } from '../../../testing/redis.ts'
import type { Database, Fragment } from '../../src/store/db.ts'
import { daemonsIn, Yard } from '../support/crash.ts'
import { costOf, entriesOf, intervalsOf, minutes, sumOf } from '../support/credit.ts'
import { lockingTransaction } from '../support/database.ts'
import { credentialOf, invoiceIn } from '../support/gateway.ts'
import { type Created, leasesLost, type Node, newOwner, pauseInStep, runningPidOf, withhold } from '../support/nodes.ts'
import { type Merchant, newMerchant } from '../support/payments.ts'
import { type Answer, eventually, freePort, PATIENCE_MS, PROCESS, type Request } from '../support/server.ts'

/**
 * Reliability 13: three processes on one PostgreSQL and one Redis, under load and faults. One is killed and started again,
 * and one is paused for longer than its leases. With FULL=1 the leases really expire, and a minute of random faults comes first.
 * Otherwise, the test moves the end of a lease in the database, whose clock alone decides. SEED=… repeats the choices of a run.
 */

const IS_FULL = process.env.FULL === '1'
const SHOPPERS = 6
const NODES_EACH = 3
const PRICE_SAT_PER_DAY = 14_400
const CREDIT_SAT = 1_000_000
const AMOUNT_SAT = 10
/** After this long without a response, a client repeats its request at another process. Requests that are not repeated wait longer. */
const CLIENT_TIMEOUT_MS = 2_000
const RANDOM_FAULTS_MS = 60_000
/** Longer than PostgreSQL keeps the transaction of a paused process open. */
const LONGEST_PAUSE_MS = 15_000

const isWanted = hasRedis() || process.env.CI === 'true'
if (!isWanted) process.stderr.write('\n### SKIPPED: replicas.test.ts: redis-server is not on the PATH ###\n\n')

describe.skipIf(!isWanted)('three replicas', () => {
  const redis = new TestRedis('password-of-redis')
  /** Reconciles and meters; the other two only serve. */
  let controller: Yard
  let killed: Yard
  let paused: Yard
  let replicas: Yard[]
  let metricsPort: number
  let sql: Database
  let merchant: Merchant
  /** Receive the payments, and run until the load ends. */
  let shops: Created[]

  beforeAll(async () => {
    if (!hasRedis()) throw new Error('CI needs Redis: redis-server is not on the PATH')
    await redis.start()
    metricsPort = await freePort()
    const env = { NODE_PRICE_SAT_PER_DAY: String(PRICE_SAT_PER_DAY), REDIS_URL: redis.url, GATEWAY_RATE_LIMIT_MAX: '1000000' }
    controller = await new Yard({ command: PROCESS, env: { ...env, METRICS_PORT: String(metricsPort) } }).start()
    const api = (): Promise<Yard> => {
      const shared = { ...controller.sharedStoreEnv, ROLE: 'api', NODE_CALLBACK_URL: controller.url }
      return new Yard({ command: PROCESS, dataDir: controller.dataDir, env: { ...env, ...shared } }).start()
    }
    ;[killed, paused] = await Promise.all([api(), api()])
    replicas = [controller, killed, paused]
    sql = controller.sql()
    merchant = await newMerchant(controller, { creditSat: CREDIT_SAT })
    shops = await Promise.all([1, 2].map(() => merchant.owner.createReady()))
  })
  afterAll(() => redis.remove())

  let turn = 0
  const anyReplica = (): Yard => replicas[turn++ % replicas.length] as Yard

  /** Repeats the request, at one replica after the other, until it gets an answer that ends it. */
  const insist = (
    ask: (replica: Yard) => Promise<Answer>,
    isEnd: (answer: Answer) => boolean,
    what: string,
    any = anyReplica,
  ): Promise<Answer> =>
    eventually(async () => {
      const answer = await ask(any())
      if (answer.status === 500) throw new Hopeless(answer.text)
      if (!isEnd(answer)) throw new Error(`${answer.status} ${answer.text}`)
      return answer
    }, what)

  const nodes = (replica: Yard, method: string, path: string, options: Request = {}): Promise<Answer> =>
    replica.send(method, `/v1/nodes${path}`, { token: merchant.owner.key.key, timeoutMs: CLIENT_TIMEOUT_MS, ...options })
  const payments = (replica: Yard, path: string, options: Request): Promise<Answer> =>
    replica.send('POST', `/v1/gateway/payments${path}`, { token: merchant.key.key, timeoutMs: CLIENT_TIMEOUT_MS, ...options })
  const allNodes = async (): Promise<Node[]> => (await nodes(controller, 'GET', '', { timeoutMs: PATIENCE_MS })).json().nodes
  const ask = (replica: Yard, nodeId: string, key: string, timeoutMs = CLIENT_TIMEOUT_MS): Promise<Answer> => {
    const json = { nodeId, amountSat: AMOUNT_SAT, description: key }
    return payments(replica, '', { json, headers: { 'idempotency-key': key }, timeoutMs })
  }
  const isCreated = ({ status }: Answer): boolean => status === 201

  /** A payment, and how many of its two concurrent redemptions were granted. */
  type Purchase = { id: string; nodeId: string; granted: number }

  async function buy({ node }: Created): Promise<Purchase> {
    const key = randomUUID()
    const payment = (await insist((replica) => ask(replica, node.id, key), isCreated, 'a payment')).json()
    const json = { invoice: invoiceIn(payment.challenge) }
    const pay = (replica: Yard) => replica.operator('POST', '/sandbox/pay', { json, timeoutMs: CLIENT_TIMEOUT_MS })
    const { preimage } = (await insist(pay, ({ status }) => status === 200, 'the customer to pay')).json()
    const credential = credentialOf(payment, preimage)
    const isDecided = ({ status, text }: Answer): boolean => status === 200 || text.includes('"already_redeemed"')
    const claims = await Promise.all(
      [randomUUID(), randomUUID()].map((requestId) => {
        const redeem = (replica: Yard) => payments(replica, `/${payment.id}/redeem`, { json: { credential, requestId } })
        return insist(redeem, isDecided, 'a redemption')
      }),
    )
    return { id: payment.id, nodeId: node.id, granted: claims.filter(({ status }) => status === 200).length }
  }

  async function createNode(): Promise<string> {
    const headers = { 'idempotency-key': randomUUID() }
    const create = (replica: Yard) => nodes(replica, 'POST', '', { json: {}, headers })
    return (await insist(create, ({ status }) => status === 202, 'a node')).json().node.id
  }

  /** Requests the operation until the node shows the status: a request may have been carried out although its response was lost. */
  const reach = (id: string, status: Node['status'], operation?: 'start' | 'stop'): Promise<true> =>
    eventually(async () => {
      const view = (await nodes(anyReplica(), 'GET', `/${id}`)).json()
      if (view.status === status) return true as const
      if (operation) await nodes(anyReplica(), 'POST', `/${id}/${operation}`)
      throw new Error(`${view.status}: ${view.failureMessage}`)
    }, `${id} to be ${status}`)

  const freeze = (id: string): { thaw: () => void } => {
    const pid = runningPidOf(controller, { id })
    process.kill(pid, 'SIGSTOP')
    return { thaw: () => process.kill(pid, 'SIGCONT') }
  }
  const pause = (replica: Yard): { resume: () => void } => {
    replica.child.kill('SIGSTOP')
    return { resume: () => replica.child.kill('SIGCONT') }
  }

  const rowOf = async (id: string): Promise<Record<string, unknown> | undefined> =>
    (await sql`SELECT * FROM nodes WHERE id = ${id}`)[0]

  test('C41, C45: under load, with one replica killed and one paused, nothing is lost or done twice', {
    timeout: 5 * PATIENCE_MS,
  }, async () => {
    const purchases: Purchase[] = []
    const created: string[] = []
    let isOver = false
    const shopper = async (_: unknown, index: number): Promise<void> => {
      while (!isOver) purchases.push(await buy(shops[index % shops.length] as Created))
    }
    const landlord = async (): Promise<void> => {
      const mine: string[] = []
      for (let round = 0; !isOver; round++) {
        if (mine.length < NODES_EACH) {
          mine.push(await createNode())
          created.push(mine.at(-1) as string)
        }
        const id = mine[round % mine.length] as string
        await reach(id, 'ready', 'start')
        await reach(id, 'stopped', 'stop')
        await reach(id, 'ready', 'start')
      }
    }
    const load = Promise.all([...Array.from({ length: SHOPPERS }, shopper), landlord(), landlord()])
    /** Whatever the fault, customers go on buying. */
    const moreSold = async (): Promise<void> => {
      const sold = purchases.length
      await Promise.race([load, eventually(() => purchases.length >= sold + SHOPPERS, 'customers to go on')])
    }

    await moreSold()
    if (IS_FULL) await randomFaults()
    await redis.kill()
    await moreSold()
    await redis.start()
    await killed.kill('SIGKILL')
    await moreSold()
    await killed.start()
    await moreSold()
    await theControllerPausedBeyondItsLease(moreSold)
    await moreSold()
    await aReplicaPausedInTheMiddleOfAPayment(moreSold)
    await controller.kill('SIGKILL')
    await moreSold()
    await controller.start()
    await moreSold()
    isOver = true
    await load

    await nothingIsLostOrDoubled(purchases, created)
    await theLedgerAddsUp(created)
  })

  test('a replica that is paused while it holds a lock delays the others only until its transaction times out', async () => {
    const { key } = await newOwner(controller, { creditSat: CREDIT_SAT })
    const create = (replica: Yard) => replica.send('POST', '/v1/nodes', { token: key.key, json: {} })
    const inState = (condition: Fragment) =>
      eventually(
        async () => (await sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND ${condition}`)[0],
        'the replica to hold the lock',
      )
    let late: Promise<Answer> | undefined
    let resume = (): void => undefined
    await lockingTransaction(sql, async (transaction) => {
      await transaction`SELECT 1 FROM accounts WHERE id = ${key.accountId} FOR UPDATE`
      late = create(paused)
      await inState(sql`wait_event_type = 'Lock'`)
      resume = pause(paused).resume
    })
    await inState(sql`state = 'idle in transaction'`)
    const answer = await create(killed)
    expect([answer.status, answer.text]).toEqual([202, expect.any(String)])
    resume()
    expect((await late)?.status).toBe(503)
    expect(await sql`SELECT id FROM nodes WHERE account_id = ${key.accountId}`).toEqual([{ id: answer.json().node.id }])
  })

  /** Again and again, one replica is killed while another is paused, and Redis is restarted. The third replica is left alone. */
  async function randomFaults(): Promise<void> {
    const seed = process.env.SEED ?? randomUUID()
    process.stderr.write(`SEED=${seed}\n`)
    let drawn = 0
    const random = (): number => createHash('sha256').update(`${seed} ${drawn++}`).digest().readUInt32BE() / 2 ** 32
    const untilMs = Date.now() + RANDOM_FAULTS_MS
    while (Date.now() < untilMs) {
      const first = Math.floor(random() * replicas.length)
      const second = (first + 1 + Math.floor(random() * (replicas.length - 1))) % replicas.length
      const [toKill, toPause] = [replicas[first] as Yard, replicas[second] as Yard]
      const { resume } = pause(toPause)
      await Promise.all([
        sleep(random() * LONGEST_PAUSE_MS).then(resume),
        (async () => {
          await sleep(random() * 3_000)
          await toKill.kill('SIGKILL')
          await sleep(random() * 3_000)
          await toKill.start()
        })(),
        (async () => {
          await sleep(random() * 3_000)
          await redis.kill()
          await sleep(random() * 3_000)
          await redis.start()
        })(),
      ])
    }
  }

  async function theControllerPausedBeyondItsLease(meanwhile: () => Promise<void>): Promise<void> {
    const { id } = (await merchant.owner.createReady()).node
    const lostBefore = await leasesLost(metricsPort)
    // While the node does not answer, the replica that checks it keeps its lease.
    const { thaw } = freeze(id)
    const { resume } = await pauseInStep(controller, sql, id, meanwhile)
    thaw()
    if (!IS_FULL) await sql`UPDATE nodes SET lease_until = now() WHERE id = ${id}`
    await eventually(async () => (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND lease_until < now()`)[0], 'its lease to end')
    const { giveBack } = await withhold(sql, { id })
    const taken = await rowOf(id)
    resume()
    await eventually(async () => (await leasesLost(metricsPort)) > lostBefore, 'the controller to notice')
    expect(await rowOf(id)).toEqual(taken)
    await giveBack()
    await reach(id, 'stopped', 'stop')
  }

  async function aReplicaPausedInTheMiddleOfAPayment(meanwhile: () => Promise<void>): Promise<void> {
    const { id } = (await merchant.owner.createReady()).node
    const key = randomUUID()
    const { thaw } = freeze(id)
    const late = ask(paused, id, key, PATIENCE_MS)
    await eventually(async () => (await sql`SELECT 1 FROM idempotency_keys WHERE key = ${key}`)[0], 'the request to begin')
    const { resume } = pause(paused)
    thaw()
    await meanwhile()
    if (!IS_FULL) await sql`UPDATE idempotency_keys SET running_until = now() WHERE key = ${key} AND answer IS NULL`
    const first = await insist(
      (replica) => ask(replica, id, key),
      isCreated,
      'another replica to take over',
      () => killed,
    )
    resume()
    // Either the paused replica finds that another one has taken over, or its own call to the node has timed out.
    expect([409, 502]).toContain((await late).status)
    expect((await ask(paused, id, key, PATIENCE_MS)).text).toBe(first.text)
    expect(await sql`SELECT id FROM gateway_payments WHERE node_id = ${id}`).toEqual([{ id: first.json().id }])
    await reach(id, 'stopped', 'stop')
  }

  async function nothingIsLostOrDoubled(purchases: Purchase[], created: string[]): Promise<void> {
    expect(purchases.filter(({ granted }) => granted !== 1)).toEqual([])
    const ids = shops.map(({ node }) => node.id)
    const rows = await sql<{ id: string }[]>`
      SELECT id FROM gateway_payments JOIN paid_payments USING (account_id, id)
      WHERE node_id = ANY (${ids}) AND redeemed_at IS NOT NULL ORDER BY id`
    expect(rows.map(({ id }) => id)).toEqual(purchases.map(({ id }) => id).sort())
    expect(await sql`SELECT 1 FROM gateway_payments WHERE node_id = ANY (${ids})`).toHaveLength(purchases.length)
    for (const { node, credentials } of shops) {
      const path = '/payments/incoming?limit=100000'
      const received = await eventually(() => controller.node(node.id, credentials.password, 'GET', path), 'the node')
      expect(received).toHaveLength(purchases.filter(({ nodeId }) => nodeId === node.id).length)
    }

    const list = await allNodes()
    const others = list.filter(({ id }) => !created.includes(id) && !ids.includes(id))
    expect(list.map(({ id }) => id).sort()).toEqual([...created, ...ids, ...others.map(({ id }) => id)].sort())
    // The nodes that were created for the two pauses.
    expect(others.map(({ status }) => status)).toEqual(['stopped', 'stopped'])
    const running = list.filter(({ status }) => status === 'ready').map(({ id }) => id)
    expect(running.length + list.filter(({ status }) => status === 'stopped').length).toBe(list.length)
    const treasury = await sql<
      { id: string }[]
    >`SELECT n.id FROM nodes n JOIN accounts a ON a.id = n.account_id WHERE a.is_treasury`
    const daemons = daemonsIn(controller.dataDir).map(({ nodeId }) => nodeId)
    expect(daemons.sort()).toEqual([...running, ...treasury.map(({ id }) => id)].sort())
  }

  async function theLedgerAddsUp(created: string[]): Promise<void> {
    const list = await allNodes()
    await Promise.all(list.map(({ id }) => reach(id, 'stopped', 'stop')))
    // Usage is posted at the start, and then every 30 s.
    await controller.restart()
    await eventually(async () => (await sql`SELECT 1 FROM usage_intervals WHERE posted_at IS NULL`).length === 0, 'all usage')
    const { accountId } = merchant.owner
    const entries = await entriesOf(sql, accountId, 'usage')
    for (const { id } of list) {
      const intervals = await intervalsOf(sql, id)
      const used = intervals.flatMap(({ from, to }) => minutes(from, to ?? Number.NaN))
      expect(used.length, 'the node was used').toBeGreaterThan(0)
      expect(new Set(used).size, 'no minute counts twice').toBe(used.length)
      const charged = sumOf(entries.filter(({ reference }) => reference?.startsWith(`${id} `)))
      expect(-charged).toBe(costOf(PRICE_SAT_PER_DAY * 1000, used))
    }
    const account = (await controller.operator('GET', `/accounts/${accountId}`)).json()
    expect(account.creditSat).toBe(Math.floor((CREDIT_SAT * 1000 + sumOf(entries)) / 1000))
    expect(created.length).toBeGreaterThan(0)
  }
})
