import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { NOWHERE } from '../../../server/test/support/payments.ts'
import { eventually } from '../../../testing/eventually.ts'
import {
  AuthenticationError,
  BadRequestError,
  Boltyard,
  ConnectionError,
  type EventsOptions,
  ExpiredError,
  ServiceError,
  type StreamedEvent,
} from '../../src/index.ts'
import { EventsApi, refusalOf } from './events-api.ts'

/** `client.events` over real sockets that break. */

const apiKey = 'byk_test'
let api: EventsApi
let boltyard: Boltyard
let stop: AbortController

beforeEach(async () => {
  api = await new EventsApi().open()
  boltyard = new Boltyard({ apiKey, baseUrl: api.baseUrl })
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort()
  await api.close()
})

/** Collects events in the background until the test aborts. */
function follow(
  options: EventsOptions = {},
  client = boltyard,
): { events: StreamedEvent[]; ids: () => string[]; ended: Promise<void> } {
  const events: StreamedEvent[] = []
  const collect = async (): Promise<void> => {
    for await (const event of client.events({ signal: stop.signal, ...options })) events.push(event)
  }
  return { events, ids: () => events.map(({ id }) => id), ended: collect() }
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, at) => `evt_${at + 1}`)

test('events arrive as they happen, each with the cursor after it', async () => {
  api.publish('node.ready')
  const { events, ended } = follow()
  await api.connected()
  const second = api.publish('payment.settled', { amountSat: 10, description: 'Zürich ☕' })
  const third = api.publish('payment.paid')
  await eventually(() => events.length === 2, 'two events')
  expect(events).toEqual([
    { ...second, cursor: 'c2' },
    { ...third, cursor: 'c3' },
  ])
  stop.abort()
  await ended
  expect([...api.keys]).toEqual([`Bearer ${apiKey}`])
})

test('`after` starts after that cursor; filters are passed on', async () => {
  for (const type of ['a', 'b', 'c']) api.publish(type)
  const { ids } = follow({ after: 'c1', types: 'payment.*,node.ready', nodeId: 'node_1' })
  await eventually(() => ids().length === 2, 'two events')
  expect(ids()).toEqual(['evt_2', 'evt_3'])
  expect(api.asked).toEqual([{ cursor: 'c1', types: 'payment.*,node.ready', nodeId: 'node_1' }])
})

test('a page has the events after its cursor, and a cursor to continue from', async () => {
  for (const type of ['a', 'b', 'c']) api.publish(type)
  const page = await boltyard.events.list({ limit: 2 })
  expect(page).toEqual({ events: api.events.slice(0, 2), nextCursor: 'c2' })
  expect(await boltyard.events.list({ cursor: page.nextCursor })).toEqual({ events: api.events.slice(2), nextCursor: 'c3' })
})

describe('an interruption loses nothing and repeats nothing', () => {
  test.each(['cut', 'end'] as const)('%s', async (interrupt) => {
    let connections = 0
    const { ids } = follow({ after: 'c0', onConnect: () => connections++ })
    await api.connected()
    for (let at = 0; at < 5; at++) {
      api.publish('payment.settled')
      api[interrupt]()
      api.publish('payment.settled')
      await api.connected()
    }
    await eventually(() => ids().length === 10, 'all events')
    expect(ids()).toEqual(numbered(10))
    expect(connections).toBe(6)
  })

  test('in the middle of a message', async () => {
    const { ids } = follow({ after: 'c0' })
    await api.connected()
    api.publish('a')
    await eventually(() => ids().length === 1, 'the first event')
    api.write('id: c2\nevent: payment.settled\ndata: {"id":"evt_2"')
    api.cut()
    api.publish('b')
    await eventually(() => ids().length === 2, 'the second event')
    expect(ids()).toEqual(numbered(2))
  })

  test('before the first event: the service sends the position at which the stream starts', async () => {
    api.publish('before')
    const { reads, fetch } = countedFetch()
    const { ids } = follow({}, new Boltyard({ apiKey, baseUrl: api.baseUrl, fetch }))
    await eventually(() => reads() === 1, 'the position')
    api.cut()
    api.publish('meanwhile')
    await eventually(() => ids().length === 1, 'the event of the interruption')
    expect(ids()).toEqual(['evt_2'])
  })

  test('silence: nothing arrives on a connection that is still open', async () => {
    const { ids } = follow({ after: 'c0', idleTimeoutMs: 200 })
    await eventually(() => api.asked.length >= 3, 'a third connection')
    api.publish('a')
    await eventually(() => ids().length === 1, 'the event')
  })

  test('a keep-alive is enough to stay connected', async () => {
    follow({ idleTimeoutMs: 3_000 })
    await api.connected()
    const ends = Date.now() + 4_000
    while (Date.now() < ends) {
      api.write(': keep-alive\n\n')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(api.asked).toHaveLength(1)
  })

  test('the service asks for a pause, because the account has too many streams', async () => {
    const { ids } = follow({ after: 'c0' })
    await api.connected()
    const endedAt = Date.now()
    api.write('retry: 1500\n\n')
    api.end()
    api.publish('a')
    await eventually(() => ids().length === 1, 'the event')
    expect(Date.now() - endedAt).toBeGreaterThanOrEqual(1_500)
  })

  test('a service that is away longer than any number of retries', async () => {
    const { attempts, fetch } = countedFetch()
    const { ids } = follow({ after: 'c0' }, new Boltyard({ apiKey, baseUrl: api.baseUrl, maxRetries: 0, fetch }))
    await api.connected()
    const { port } = api
    await api.close()
    await eventually(() => attempts() >= 4, 'three attempts in vain')
    const again = new EventsApi()
    again.publish('while it was away')
    await again.open(port)
    await eventually(() => ids().length === 1, 'the event')
  })

  test('errors of a service that restarts: 503, a proxy’s page, a rate limit', async () => {
    const { ids } = follow({ after: 'c0' })
    await api.connected()
    api.refusals = [
      refusalOf(503, 'service_unavailable'),
      { status: 502, headers: { 'content-type': 'text/html' }, body: '<html>' },
      refusalOf(429, 'rate_limited', {}, { 'retry-after': '1' }),
    ]
    api.cut()
    api.publish('a')
    await eventually(() => ids().length === 1, 'the event')
    expect(api.asked).toHaveLength(5)
  })
})

describe('an error that a retry cannot fix is thrown, at once and also on a reconnection', () => {
  test.each([
    [400, 'bad_request', BadRequestError],
    [401, 'unauthorized', AuthenticationError],
    [403, 'forbidden', BadRequestError],
    [410, 'cursor_expired', ExpiredError],
  ] as const)('%d %s', async (status, code, kind) => {
    api.refusals = [refusalOf(status, code, { oldestCursor: 'c9' })]
    const error = await follow({ after: 'c1' }).ended.catch((error) => error)
    expect(error).toBeInstanceOf(kind)
    expect(error).toMatchObject({ status, code, details: { oldestCursor: 'c9' } })
    expect(api.asked).toHaveLength(1)

    const { ended } = follow()
    await api.connected()
    api.refusals = [refusalOf(status, code)]
    api.cut()
    await expect(ended).rejects.toMatchObject({ status, code })
  })

  test.each([
    ['a page', { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' }],
    ['JSON', { status: 200, body: '{}' }],
    ['a redirect, which is not followed', { status: 302, headers: { location: 'http://127.0.0.1:2/' } }],
  ])('%s instead of a stream', async (_what, refusal) => {
    api.refusals = [refusal]
    const error = await follow().ended.catch((error) => error)
    expect(error).toBeInstanceOf(ServiceError)
    expect(error).toMatchObject({ code: 'unexpected_answer', status: refusal.status })
  })

  test.each(['{"secret', 'null', '1', '["secret"]'])('a message that is not an event: %s', async (data) => {
    const { ended } = follow()
    await api.connected()
    api.write(`id: c1\ndata: ${data}\n\n`)
    const error = await ended.catch((error) => error)
    expect(error).toMatchObject({ code: 'unexpected_answer' })
    expect(error.message).not.toContain('secret')
  })

  test('an error of the caller’s own', async () => {
    const own = new Error('own')
    const onConnect = (): never => {
      throw own
    }
    await expect(follow({ onConnect }).ended).rejects.toBe(own)
  })
})

test('a service that was never reached is an error after the usual retries', async () => {
  const nobody = new Boltyard({ apiKey, baseUrl: `${NOWHERE}/v1`, maxRetries: 1 })
  await expect(follow({}, nobody).ended).rejects.toBeInstanceOf(ConnectionError)
  api.refusals = [refusalOf(503, 'service_unavailable'), refusalOf(503, 'service_unavailable')]
  const patient = new Boltyard({ apiKey, baseUrl: api.baseUrl, maxRetries: 2 })
  follow({}, patient)
  await api.connected()
  expect(api.asked).toHaveLength(3)
})

describe('the connection is closed', () => {
  test('when the signal aborts: while waiting, connecting, pausing and processing', async () => {
    const waiting = follow()
    await api.connected()
    stop.abort()
    await waiting.ended
    await api.connected(0)

    await follow({ signal: AbortSignal.abort() }).ended

    const pausing = new AbortController()
    api.refusals = [refusalOf(429, 'rate_limited', {}, { 'retry-after': '300' })]
    const paused = follow({ signal: pausing.signal })
    await eventually(() => api.refusals.length === 0, 'the refusal')
    pausing.abort()
    await paused.ended

    api.publish('a')
    api.publish('b')
    const processing = new AbortController()
    const seen: string[] = []
    for await (const { id } of boltyard.events({ after: 'c0', signal: processing.signal })) {
      seen.push(id)
      processing.abort()
    }
    expect(seen).toEqual(['evt_1'])
    await api.connected(0)
  })

  test('when the caller leaves the loop, by break or by an error', async () => {
    api.publish('a')
    for await (const { id } of boltyard.events({ after: 'c0' })) {
      expect(id).toBe('evt_1')
      await api.connected(1)
      break
    }
    await api.connected(0)
    const fails = async (): Promise<void> => {
      for await (const { id } of boltyard.events({ after: 'c0' })) throw new Error(id)
    }
    await expect(fails()).rejects.toThrow('evt_1')
    await api.connected(0)
  })
})

test('open streams do not count as concurrent requests', async () => {
  const one = new Boltyard({ apiKey, baseUrl: api.baseUrl, maxConcurrency: 1 })
  follow({}, one)
  follow({}, one)
  await api.connected(2)
  expect((await one.events.list()).nextCursor).toBe('c0')
})

/** Counts the attempts to connect, and the chunks that the client has read. */
function countedFetch(): { attempts: () => number; reads: () => number; fetch: typeof fetch } {
  let [attempts, reads] = [0, 0]
  const counted: typeof fetch = async (input, init) => {
    attempts++
    const response = await fetch(input, init)
    const getReader = response.body?.getReader.bind(response.body) as () => ReadableStreamDefaultReader<Uint8Array>
    const read = async (reader: ReadableStreamDefaultReader<Uint8Array>) => {
      const chunk = await reader.read()
      reads++
      return chunk
    }
    Object.assign(response.body ?? {}, {
      getReader: () => {
        const reader = getReader()
        return { read: () => read(reader) }
      },
    })
    return response
  }
  return { attempts: () => attempts, reads: () => reads, fetch: counted }
}
