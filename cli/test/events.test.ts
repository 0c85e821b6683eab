import { statSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { EventsApi, refusalOf } from '../../sdk/test/events/events-api.ts'
import { NOWHERE } from '../../server/test/support/payments.ts'
import { eventually } from '../../testing/eventually.ts'
import { answers, hangs, inTurn, ok, openReceiver, verified } from '../../testing/receiver.ts'
import { Customer, inHome, onTerminal, run, type Setting } from './harness.ts'

/** `boltyard events` and `boltyard listen` against a small service that loses connections on demand. */

let api: EventsApi
let ada: Customer

beforeEach(async () => {
  api = await new EventsApi().open()
  ada = new Customer(api.baseUrl, 'byk_test')
})

const PAYMENT = { paymentId: 'pay_1', nodeId: 'node_1', amountSat: 1500, description: 'Weather \u001b[31m' }

/** A command that runs until it is interrupted, and the JSON lines it has printed so far. */
function running(args: string[], setting: Setting = {}): { lines: () => any[]; interrupt: () => Promise<number | null> } {
  const { child, ended } = ada.start(args, setting)
  let text = ''
  child.stdout?.on('data', (chunk) => {
    text += chunk
  })
  const lines = (): any[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  const interrupt = async (): Promise<number | null> => {
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(stderr).toBe('')
    return code
  }
  return { lines, interrupt }
}

describe('events', () => {
  test('prints one page as JSON, and continues after a cursor', async () => {
    for (const type of ['node.ready', 'payment.settled', 'payment.paid']) api.publish(type, PAYMENT)
    const page = await ada.gets(['events', '--limit', '2'])
    expect(page).toEqual({ events: api.events.slice(0, 2), nextCursor: 'c2' })
    expect(await ada.gets(['events', '--after', page.nextCursor])).toEqual({ events: api.events.slice(2), nextCursor: 'c3' })
    expect(await ada.gets(['events', '--after', 'c3'])).toEqual({ events: [], nextCursor: 'c3' })
  })

  test('with a filter, looks for the first page that is not empty', async () => {
    for (const type of ['a', 'a', 'a', 'b', 'a']) api.publish(type)
    expect(await ada.gets(['events', '--limit', '1', '--types', 'b', '--node', 'node_1'])).toMatchObject({
      events: [{ id: 'evt_4' }],
      nextCursor: 'c4',
    })
    expect(api.asked.at(-1)).toEqual({ cursor: 'c3', limit: '1', types: 'b', nodeId: 'node_1' })
    expect(await ada.gets(['events', '--types', 'c'])).toEqual({ events: [], nextCursor: 'c5' })
  })

  test('--follow prints one line of JSON for each event with its cursor, across interruptions, until Ctrl-C', async () => {
    api.publish('node.ready')
    const { lines, interrupt } = running(['events', '--follow', '--after', 'c0', '--types', 'payment.*'])
    await eventually(() => lines().length === 1, 'the first event')
    api.publish('payment.settled', PAYMENT)
    api.cut()
    api.publish('payment.paid', PAYMENT)
    await eventually(() => lines().length === 3, 'three events')
    expect(lines()).toEqual(api.events.map((event, at) => ({ ...event, cursor: `c${at + 1}` })))
    expect(api.asked[0]).toEqual({ cursor: 'c0', types: 'payment.*' })
    expect(await interrupt()).toBe(0)
  })

  test('--follow with --timeout ends with exit code 3', async () => {
    const { code, error } = await ada.run(['events', '--follow', '--timeout', '1'])
    expect([code, error().code]).toEqual([3, 'timeout'])
  })

  test('a cursor whose events have been removed is exit code 8, with the one to continue from', async () => {
    api.refusals = [refusalOf(410, 'cursor_expired', { oldestCursor: 'c9' })]
    const { code, error } = await ada.run(['events', '--follow', '--after', 'c1'])
    expect([code, error().code, error().next]).toEqual([
      8,
      'cursor_expired',
      'To list the events that are still kept: --after c9',
    ])
  })

  test('--limit with --follow is a mistake', async () => {
    const { code, error } = await ada.run(['events', '--follow', '--limit', '5'])
    expect([code, error().message]).toEqual([2, '--limit cannot be combined with --follow.'])
  })

  test('a service that is not there is exit code 3', async () => {
    const { code, error } = await ada.via(`${NOWHERE}/v1`).run(['events', '--follow'])
    expect([code, error().code]).toEqual([3, 'connection_failed'])
  })
})

describe('listen', () => {
  const secret = async (): Promise<string> => (await run(['listen', '--print-secret'])).stdout.trim()

  test('the secret is created once, is only readable by its owner, and is printed alone', async () => {
    const first = await secret()
    expect(first).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(await secret()).toBe(first)
    expect((await run(['listen', '--print-secret', '--json'])).json()).toEqual({ secret: first })
    expect(statSync(inHome('.local/state/boltyard/listen.json')).mode & 0o777).toBe(0o600)
  })

  test('each event is posted once with the headers of a webhook, and its result printed', async () => {
    const receiver = await openReceiver()
    const key = await secret()
    const { lines, interrupt } = running(['listen', '--forward-to', receiver.url, '--types', 'payment.*'])
    await api.connected()
    api.publish('payment.settled', PAYMENT)
    api.publish('payment.paid', { ...PAYMENT, description: 'Zürich ☕' })
    await eventually(() => lines().length === 2, 'two results')
    expect(api.asked).toEqual([{ types: 'payment.*' }])
    for (const [at, request] of receiver.received.entries()) {
      const { method, path, headers } = request
      expect([method, path, headers['content-type']]).toEqual(['POST', '/hook', 'application/json'])
      expect(verified(key, request)).toEqual(api.events[at])
      expect(headers['webhook-id']).toBe(api.events[at]?.id)
    }
    expect(lines()).toEqual(
      api.events.map(({ id, type }, at) => ({
        eventId: id,
        type,
        status: 200,
        durationMs: expect.any(Number),
        cursor: `c${at + 1}`,
      })),
    )
    expect(await interrupt()).toBe(0)
    expect(receiver.received).toHaveLength(2)
  })

  test('errors, redirects and refused connections are reported, and the next event is delivered', async () => {
    const receiver = await openReceiver(inTurn(answers(500), answers(302, { location: '/elsewhere' })))
    const { lines, interrupt } = running(['listen', '--forward-to', receiver.url])
    await api.connected()
    for (let at = 0; at < 3; at++) api.publish('payment.settled', PAYMENT)
    await eventually(() => lines().length === 3, 'three results')
    expect(lines().map(({ status }) => status)).toEqual([500, 302, 200])
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook', '/hook', '/hook'])

    const { port } = receiver
    await receiver.close()
    api.publish('payment.settled', PAYMENT)
    await eventually(() => lines().length === 4, 'a result without a receiver')
    expect(lines()[3]).toMatchObject({ status: null, error: expect.stringMatching(/ECONNREFUSED|ECONNRESET|other side closed/) })
    const again = await openReceiver(ok, port)
    api.publish('payment.settled', PAYMENT)
    await eventually(() => lines().length === 5, 'a result')
    expect([lines()[4].status, again.received.length]).toEqual([200, 1])
    expect(await interrupt()).toBe(0)
  })

  test('Ctrl-C also ends a delivery without a response', async () => {
    const receiver = await openReceiver(hangs)
    const { lines, interrupt } = running(['listen', '--forward-to', receiver.url])
    await api.connected()
    api.publish('payment.settled')
    await eventually(() => receiver.received.length === 1, 'the delivery')
    expect([await interrupt(), lines()]).toEqual([0, []])
  })

  test.each([[[]], [['--forward-to', 'localhost:3000']], [['--forward-to', 'ftp://localhost/']]])(
    '%j is a mistake',
    async (args) => {
      const { code, error } = await ada.run(['listen', ...args])
      expect([code, error().message]).toEqual([2, expect.stringContaining('--forward-to')])
    },
  )
})

onTerminal('events and listen', () => {
  test('a page is a table, without control characters', async () => {
    api.publish('payment.settled', PAYMENT)
    const { code, plain, screen } = await ada.sees(['events'])
    expect([code, plain]).toEqual([
      0,
      expect.stringMatching(/^TIME +TYPE +ID +ABOUT\n.*payment\.settled +evt_1 +1\u2009500 sat {2}Weather/),
    ])
    expect(plain).toContain('To continue: --after c1')
    expect(screen).not.toContain('\u001b[31m')
    expect((await ada.sees(['events', '--after', 'c1'])).plain).toContain('No events.')
  })

  test('listen says where it forwards to and how to see the secret, but not the secret; it ends with Ctrl-C', async () => {
    const receiver = await openReceiver(inTurn(ok, answers(500)))
    const terminal = ada.terminal(['listen', '--forward-to', receiver.url])
    await terminal.shows(/Forwarding events to http:\S+\. To see the signing secret: boltyard listen --print-secret/)
    api.publish('payment.settled', PAYMENT)
    await terminal.shows(/T\S+Z {2}payment\.settled {3}evt_1 {2}200 {2}\d+ ms/)
    api.cut()
    await terminal.shows(/Reconnected\./)
    api.publish('node.failed')
    await terminal.shows(/node\.failed {7}evt_2 {2}500 {2}\d+ ms/)
    terminal.type('\u0003')
    expect([await terminal.exited, terminal.plain]).toEqual([0, expect.not.stringContaining('whsec_')])
  })
})
