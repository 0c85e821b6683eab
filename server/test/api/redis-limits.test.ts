import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasRedis, TestRedis } from '../../../testing/redis.ts'
import { type Answer, eventually, freePort, type Server, startServer } from '../support/server.ts'

const PASSWORD = 'password-of-redis'
/** Failed authentications per address and minute. */
const MAX = 30

const isWanted = hasRedis() || process.env.CI === 'true'
if (!isWanted) process.stderr.write('\n### SKIPPED: redis-limits.test.ts: redis-server is not on the PATH ###\n\n')

const fail = (server: Server, from: string): Promise<Answer> =>
  server.send('GET', '/v1/api-key', { token: 'junk', headers: { 'x-forwarded-for': from } })

/** Fails this many times; returns how often the server answered with each status. */
async function failOften(server: Server, times: number, from: string): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (let index = 0; index < times; index++) {
    const { status } = await fail(server, from)
    counts[status] = (counts[status] ?? 0) + 1
  }
  return counts
}

let addresses = 0
const newAddress = (): string => `10.0.${++addresses >> 8}.${addresses & 255}`

describe.skipIf(!isWanted)('rate limits through Redis', () => {
  const redis = new TestRedis(PASSWORD)
  /** Each has its own database, so that they share nothing but Redis. */
  let one: Server
  let other: Server

  const start = (REDIS_URL: string): Promise<Server> => startServer({ env: { REDIS_URL, ROLE: 'api', TRUST_PROXY: '1' } })

  beforeAll(async () => {
    if (!hasRedis()) throw new Error('CI needs Redis: redis-server is not on the PATH')
    await redis.start()
    ;[one, other] = await Promise.all([start(redis.url), start(redis.url)])
    await untilShared()
  })
  afterAll(() => redis.remove())

  /** Whether one process sees what the other has counted. */
  const isShared = async (): Promise<boolean> => {
    const from = newAddress()
    await failOften(one, MAX, from)
    return (await fail(other, from)).status === 429
  }
  const untilShared = () => eventually(isShared, 'the processes to count together')

  /**
   * Redis has 250 ms for each request. If it takes longer on a busy machine, the process logs that and counts alone for a moment.
   * The count is then wrong, so the test repeats it.
   */
  const whileShared = <T>(count: () => Promise<T>): Promise<NonNullable<T>> =>
    eventually(async () => {
      await untilShared()
      const outages = (): number => [one, other].flatMap(({ stderr }) => stderr.match(/cannot reach Redis/g) ?? []).length
      const before = outages()
      const counted = await count()
      return outages() === before ? counted : undefined
    }, 'Redis to answer in time throughout')

  test('C44: processes count together, and a valid key is never refused', async () => {
    const { from, counts, last } = await whileShared(async () => {
      const address = newAddress()
      const counts = [await failOften(one, MAX / 2, address), await failOften(other, MAX / 2, address)]
      return { from: address, counts, last: [await fail(one, address), await fail(other, address)] }
    })
    expect(counts).toEqual([{ 401: MAX / 2 }, { 401: MAX / 2 }])
    for (const answer of last) {
      expect(answer.status).toBe(429)
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
      expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(60)
    }
    const { key } = await one.newKey()
    const valid = await one.send('GET', '/v1/api-key', { token: key, headers: { 'x-forwarded-for': from } })
    expect(valid.status).toBe(200)
  })

  test('C44: of 60 concurrent requests to two processes, 30 are admitted', async () => {
    const answers = await whileShared(() => {
      const from = newAddress()
      return Promise.all(Array.from({ length: 60 }, (_, index) => fail(index % 2 ? one : other, from)))
    })
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(MAX)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(MAX)
  })

  test('C42: the count starts again when the window ends', async () => {
    const env = { REDIS_URL: redis.url, ROLE: 'api', TRUST_PROXY: '1', RATE_LIMIT_MAX: '2', RATE_LIMIT_WINDOW_SECONDS: '2' }
    const server = await startServer({ env })
    const { key } = await server.newKey()
    const from = newAddress()
    const list = async (): Promise<number> =>
      (await server.send('GET', '/v1/nodes', { token: key, headers: { 'x-forwarded-for': from } })).status
    const startedAtMs = performance.now()
    const statuses = [await list(), await list(), await list()]
    // If the machine stalls, the window may be over before the third request.
    if (performance.now() - startedAtMs < 2_000) expect(statuses).toEqual([200, 200, 429])
    await eventually(async () => (await list()) === 200, 'the window to end')
    await server.stop()
  })

  test('Reliability 9: when Redis is lost, each process goes on from the shared count within a second, without errors', async () => {
    const from = await whileShared(async () => {
      const address = newAddress()
      expect(await failOften(one, 10, address)).toEqual({ 401: 10 })
      expect(await failOften(other, 10, address)).toEqual({ 401: 10 })
      return address
    })
    await redis.kill()
    // Each process continues from the last shared count that it has seen: 10 and 20.
    expect(await failOften(one, MAX, from)).toEqual({ 401: MAX - 10, 429: 10 })
    expect(await failOften(other, MAX, from)).toEqual({ 401: MAX - 20, 429: 20 })
    const fresh = newAddress()
    for (const server of [one, other]) expect(await failOften(server, MAX + 1, fresh)).toEqual({ 401: MAX, 429: 1 })
    await redis.start()
    await untilShared()
    expect(one.stderr).toMatch(/cannot reach Redis/)
    expect(one.stderr).toMatch(/Redis is back/)
  })

  test('Reliability 9: only the first requests wait for a Redis that hangs, and it is used again when it responds', async () => {
    redis.signal('SIGSTOP')
    const startedAtMs = performance.now()
    for (let time = 0; time < 6; time++) expect(await failOften(one, MAX + 1, newAddress())).toEqual({ 401: MAX, 429: 1 })
    // If every request waited for a timeout, this would take more than 45 s.
    expect(performance.now() - startedAtMs).toBeLessThan(30_000)
    redis.signal('SIGCONT')
    await untilShared()
  })

  test('Reliability 9: under load, losing Redis and getting it back causes no 5xx', async () => {
    let isOver = false
    const statuses = new Set<number>()
    const load = Array.from({ length: 4 }, async () => {
      while (!isOver) for (const server of [one, other]) statuses.add((await fail(server, newAddress())).status)
    })
    for (let round = 0; round < 2; round++) {
      await pause(300)
      await redis.kill()
      await pause(300)
      await redis.start()
    }
    await untilShared()
    isOver = true
    await Promise.all(load)
    expect([...statuses]).toEqual([401])
  })

  test('the service starts even if Redis cannot be reached or refuses the password; the password stays out of the log', async () => {
    const nowhere = `redis://:${PASSWORD}@127.0.0.1:${await freePort()}`
    const wrong = redis.url.replace(PASSWORD, `wrong-${PASSWORD}`)
    for (const url of [nowhere, wrong]) {
      const server = await start(url)
      const from = newAddress()
      expect(await failOften(server, MAX + 1, from)).toEqual({ 401: MAX, 429: 1 })
      await server.printed(/cannot reach Redis/, 'stderr')
      expect(server.stderr).not.toContain(PASSWORD)
      await server.stop()
    }
  })
})
