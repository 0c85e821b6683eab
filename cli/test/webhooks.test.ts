import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Wire } from '../../sdk/test/wire.ts'
import { eventually, type Server, startServer } from '../../server/test/support/server.ts'
import { answers, inTurn, ok, openReceiver, type Received, verified } from '../../testing/receiver.ts'
import { Customer, onTerminal, ROOMY } from './harness.ts'

/** `boltyard webhooks` against the real service, with a receiver on this machine. */

const URL = 'https://shop.example/hook'
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/

let server: Server
let wire: Wire
let accountId: string
let ada: Customer

beforeAll(async () => {
  server = await startServer({ env: ROOMY })
  wire = await new Wire(server.url).open()
})
beforeEach(async () => {
  wire.faults = []
  wire.seen.length = 0
  accountId = (await server.newAccount()).id
  ada = await Customer.of(server, ['nodes:write', 'events:read', 'webhooks:write'], accountId)
  // Otherwise a webhook that is created now may also get the event of the new key.
  await eventually(async () => (await ada.gets(['events'])).events.length === 1, 'the first event')
})

/** An event of the account: another key is created. */
const happen = (): Promise<unknown> => server.newKey([], accountId)

/** The bodies of the requests that changed something. */
const sent = (): unknown[] => wire.seen.filter(({ method }) => method !== 'GET').map(({ body }) => JSON.parse(body))

const delivered = (id: string, attempts: number): Promise<any> =>
  eventually(async () => {
    const [delivery] = (await ada.gets(['webhooks', 'deliveries', id, '--status', 'delivered'])).deliveries
    return delivery?.attempts.length === attempts ? delivery : undefined
  }, `a success at attempt ${attempts}`)

describe('settings', () => {
  test('C55: create prints the webhook with its secret; list and get show it without', async () => {
    const { node } = await ada.gets(['nodes', 'create', '--name', 'shop'])
    const options = ['--types', 'payment.*, node.failed', '--node', 'shop', '--node', node.id, '--description', 'Shop']
    const { secret, ...webhook } = await ada.gets(['webhooks', 'create', URL, ...options])
    expect(secret).toMatch(SECRET)
    expect(webhook).toMatchObject({
      url: URL,
      types: ['payment.*', 'node.failed'],
      nodeIds: [node.id],
      description: 'Shop',
    })
    expect(await ada.gets(['webhooks', 'list'])).toEqual({ webhooks: [webhook] })
    expect(await ada.gets(['webhooks', 'get', webhook.id])).toEqual(webhook)
  })

  test('C55: update changes what is named, and nothing else', async () => {
    const { secret, ...webhook } = await ada.gets(['webhooks', 'create', URL, '--types', 'node.*', '--description', 'Shop'])
    const update = (...options: string[]): Promise<unknown> =>
      ada.via(wire.baseUrl).gets(['webhooks', 'update', webhook.id, ...options])
    expect(await update('--url', `${URL}/2`, '--disable')).toEqual({ ...webhook, url: `${URL}/2`, enabled: false })
    expect(await update('--all-types', '--enable')).toMatchObject({ types: null, enabled: true, description: 'Shop' })
    expect(await update('--types', 'key.created', '--all-nodes', '--description', '')).toMatchObject({ description: null })
    expect(sent()).toEqual([
      { url: `${URL}/2`, enabled: false },
      { types: null, enabled: true },
      { types: ['key.created'], nodeIds: null, description: null },
    ])
  })

  test.each([
    [[], 'No change was given.'],
    [['--enable', '--disable'], '--enable cannot be combined with --disable.'],
    [['--types', 'node.*', '--all-types'], '--types cannot be combined with --all-types.'],
    [['--node', 'node_1', '--all-nodes'], '--node cannot be combined with --all-nodes.'],
  ])('update %j is a mistake', async (options, message) => {
    const { code, error } = await ada.via(wire.baseUrl).run(['webhooks', 'update', 'hook_1', ...options])
    expect([code, error().message, wire.seen]).toEqual([2, message, []])
  })

  test('delete needs --yes without a terminal', async () => {
    const { id } = await ada.gets(['webhooks', 'create', URL])
    const { code, error } = await ada.run(['webhooks', 'delete', id])
    expect([code, error().message, error().next]).toEqual([
      2,
      'Without a terminal, --yes is required to delete a webhook.',
      `boltyard webhooks delete ${id} --yes`,
    ])
    expect(await ada.gets(['webhooks', 'delete', id, '--yes'])).toEqual({ id, deleted: true })
    expect(await ada.gets(['webhooks', 'list'])).toEqual({ webhooks: [] })
  })

  test('C59: rotate prints the new secret, and the old one also signs during the grace period', async () => {
    const receiver = await openReceiver()
    const { id, secret: old } = await ada.gets(['webhooks', 'create', receiver.url])
    const rotated = await ada.gets(['webhooks', 'rotate', id, '--grace-seconds', '86400'])
    expect(rotated).toEqual({ id, secret: expect.stringMatching(SECRET) })
    await ada.gets(['webhooks', 'test', id])
    const { secret: latest } = await ada.gets(['webhooks', 'rotate', id])
    await ada.gets(['webhooks', 'test', id])
    const [both, last] = receiver.received as [Received, Received]
    for (const secret of [old, rotated.secret]) expect(verified(secret, both).type).toBe('payment.settled')
    expect(verified(latest, last).type).toBe('payment.settled')
    expect(() => verified(rotated.secret, last)).toThrow('No matching signature found')
  })
})

describe('deliveries', () => {
  test('C60: test prints what the receiver responded; a failure is exit code 1', async () => {
    const receiver = await openReceiver(inTurn(ok, answers(500)))
    const { id } = await ada.gets(['webhooks', 'create', receiver.url])
    expect(await ada.gets(['webhooks', 'test', id])).toMatchObject({ status: 200, response: 'thank you', error: null })
    const { code, json, error } = await ada.run(['webhooks', 'test', id, '--type', 'node.failed'])
    expect([code, json().status, error().code]).toEqual([1, 500, 'test_failed'])
    expect(error().message).toContain(json().error)
    expect(receiver.received.map(({ body }) => JSON.parse(body).type)).toEqual(['payment.settled', 'node.failed'])
  })

  test('C60: deliveries lists the attempts in pages, and redeliver sends one again', async () => {
    const receiver = await openReceiver()
    const { id } = await ada.gets(['webhooks', 'create', receiver.url])
    await happen()
    const delivery = await delivered(id, 1)
    expect(delivery).toMatchObject({ type: 'key.created', attempts: [{ status: 200, response: 'thank you' }] })
    expect(await ada.gets(['webhooks', 'redeliver', id, delivery.id])).toMatchObject({ id: delivery.id, status: 'pending' })
    await delivered(id, 2)
    expect(receiver.ids()).toEqual([delivery.eventId, delivery.eventId])

    await happen()
    await receiver.until(3)
    const newest = await ada.gets(['webhooks', 'deliveries', id, '--limit', '1'])
    const oldest = await ada.gets(['webhooks', 'deliveries', id, '--limit', '1', '--cursor', newest.nextCursor])
    expect([oldest.deliveries[0].id, oldest.nextCursor]).toEqual([delivery.id, null])
    expect(await ada.gets(['webhooks', 'deliveries', id, '--status', 'failed'])).toEqual({ deliveries: [], nextCursor: null })
  })

  test('C60: replay sends the events of a period, given as times, dates or Unix seconds', async () => {
    const receiver = await openReceiver()
    const { id } = await ada.gets(['webhooks', 'create', receiver.url])
    const replay = (...options: string[]): Promise<any> => ada.via(wire.baseUrl).gets(['webhooks', 'replay', id, ...options])
    expect(await replay('--from', '2026-01-31T12:00:00+01:00', '--to', '2026-01-31T12:00Z')).toEqual({ count: 0 })
    expect(await replay('--from', '1769817600', '--types', 'node.*,payment.paid')).toEqual({ count: 0 })
    expect(await replay('--from', '2026-01-31')).toEqual({ count: 1 })
    expect(sent()).toEqual([
      { from: 1_769_857_200, to: 1_769_860_800 },
      { from: 1_769_817_600, to: expect.any(Number), types: ['node.*', 'payment.paid'] },
      { from: 1_769_817_600, to: expect.any(Number) },
    ])
    await receiver.until(1)
    expect(receiver.ids()).toEqual((await ada.gets(['events', '--limit', '1'])).events.map((event: any) => event.id))
  })

  test.each([
    [[]],
    [['--from', 'yesterday']],
    [['--from', '2026-02-31']],
    [['--from', '2026-01-31T12:00']],
    [['--from', '0', '--to', '2026-01-31T25:00Z']],
  ])('replay %j is a mistake', async (options) => {
    const { code, error } = await ada.via(wire.baseUrl).run(['webhooks', 'replay', 'hook_1', ...options])
    expect([code, error().message, wire.seen]).toEqual([2, expect.stringMatching(/^--(from|to) /), []])
  })
})

describe('failures', () => {
  test('a lost response to create or rotate: not repeated, and what to do about the secret', async () => {
    wire.faults = ['lose answer']
    const created = await ada.via(wire.baseUrl).run(['webhooks', 'create', URL])
    expect([created.code, created.stdout, sent().length]).toEqual([3, '', 1])
    expect(created.error()).toMatchObject({ code: 'uncertain_outcome', outcome: 'unknown' })
    expect(created.error().next).toMatch(
      /^The webhook may have been created\. To check: boltyard webhooks list .*boltyard webhooks rotate <webhook>$/,
    )
    const [{ id }] = (await ada.gets(['webhooks', 'list'])).webhooks
    wire.faults = ['lose answer']
    const rotated = await ada.via(wire.baseUrl).run(['webhooks', 'rotate', id])
    expect([rotated.code, rotated.error().outcome, sent().length]).toEqual([3, 'unknown', 2])
    expect(rotated.error().next).toMatch(
      new RegExp(`^The secret may have been replaced, .* no longer sign: boltyard webhooks rotate ${id}$`),
    )
  })

  test.each([
    ['test', [], 'The sample may have been sent. Check the receiver before you send another.'],
    ['replay', ['--from', '0'], 'The service may have accepted the request. To check: boltyard webhooks deliveries hook_1'],
  ])('a lost response to %s: not repeated, and what to check', async (command, options, advice) => {
    wire.faults = ['cut']
    const { code, error } = await ada.via(wire.baseUrl).run(['webhooks', command, 'hook_1', ...options])
    expect([code, error().code, error().outcome, error().next]).toEqual([3, 'uncertain_outcome', 'unknown', advice])
    expect(sent()).toHaveLength(1)
  })

  test.each(['> /dev/full', '> /dev/null', '>&-'])('a secret that was not read is reported: %s', async (redirect) => {
    const created = await ada.run(['webhooks', 'create', URL], { redirect })
    const [{ id }] = (await ada.gets(['webhooks', 'list'])).webhooks
    const rotated = await ada.run(['webhooks', 'rotate', id], { redirect })
    for (const { code, error } of [created, rotated])
      expect([code, error().code, error().next]).toEqual([
        1,
        'output_failed',
        expect.stringMatching(new RegExp(`secret of ${id} was not read\\. .*: boltyard webhooks rotate ${id}$`)),
      ])
  })

  test('an unknown webhook is exit code 5, an unknown type 2, a missing scope 4', async () => {
    for (const command of ['get', 'test', 'rotate', 'deliveries']) {
      const { code, error } = await ada.run(['webhooks', command, 'hook_00000000000000000000'])
      expect([code, error().code, error().next]).toEqual([5, 'not_found', 'List the account’s webhooks: boltyard webhooks list'])
    }
    const wrong = await ada.run(['webhooks', 'create', URL, '--types', 'payment.unknown'])
    expect([wrong.code, wrong.error().code]).toEqual([2, 'bad_request'])
    const other = await Customer.of(server, ['events:read'])
    const refused = await other.run(['webhooks', 'list'])
    expect([refused.code, refused.error().message]).toEqual([4, expect.stringContaining('lacks the scope webhooks:write')])
  })
})

onTerminal('webhooks', () => {
  test('create shows the secret once, and says so; list is a table, get a sheet', async () => {
    expect((await ada.sees(['webhooks', 'list'])).plain).toBe('No webhooks yet. Create one: boltyard webhooks create <url>\n')
    const { plain } = await ada.sees(['webhooks', 'create', URL, '--types', 'payment.*'])
    expect(plain).toMatch(/^id +hook_\w+\nurl +https:.*\ntypes +payment\.\*\nnodes +all\nstatus +enabled\ncreated +/)
    expect(plain).toMatch(/\n\nStore this now\. It will not be shown again\.\nsecret +whsec_\S+\n$/)
    const [id = ''] = /hook_\w+/.exec(plain) ?? []
    const list = await ada.sees(['webhooks', 'list'])
    expect(list.plain).toMatch(/^ID +STATUS +LAST SUCCESS +TYPES +URL\nhook_\w+ +enabled +– +payment\.\* +https:\S+\n$/)
    await ada.gets(['webhooks', 'update', id, '--disable', '--description', 'Shop'])
    expect((await ada.sees(['webhooks', 'get', id])).plain).toMatch(/description +Shop\nstatus +disabled\n/)
    expect((await ada.sees(['webhooks', 'rotate', id])).plain).toMatch(
      /^Store this now\. It will not be shown again\.\nsecret +whsec_\S+\n$/,
    )
  })

  test('delete asks for the id; anything else deletes nothing', async () => {
    const { id } = await ada.gets(['webhooks', 'create', URL])
    const hesitant = ada.terminal(['webhooks', 'delete', id])
    await hesitant.shows(/No more events will be sent to https:\S+\.\nType the webhook’s id to delete it \(hook_\w+\): /)
    hesitant.type('yes\r')
    expect(await hesitant.exited).toBe(2)
    expect(hesitant.plain).toContain('The id does not match. Nothing was deleted.')
    const sure = ada.terminal(['webhooks', 'delete', id])
    await sure.shows(/Type the webhook’s id/)
    sure.type(`${id}\r`)
    expect(await sure.exited).toBe(0)
    expect(sure.plain).toContain(`Deleted ${id}.`)
    expect((await ada.run(['webhooks', 'get', id])).code).toBe(5)
  })

  test('test, deliveries, redeliver and replay in words, without control characters', async () => {
    const receiver = await openReceiver((response) => response.writeHead(410).end('gone\n\u001b[31mfor\u0007 good'))
    const { id } = await ada.gets(['webhooks', 'create', receiver.url])
    const tested = await ada.sees(['webhooks', 'test', id])
    expect([tested.code, tested.plain]).toEqual([
      1,
      expect.stringMatching(
        /^status +410\nduration +\d+ ms\nresponse +gone \ufffd\[31mfor\ufffd good\nboltyard: The receiver did not/,
      ),
    ])
    expect((await ada.sees(['webhooks', 'deliveries', id])).plain).toBe('No deliveries.\n')
    await happen()
    await eventually(async () => (await ada.gets(['webhooks', 'get', id])).disabledReason === 'gone', 'it to be disabled')
    expect((await ada.sees(['webhooks', 'list'])).plain).toMatch(/ disabled, gone +– +all +http:/)
    expect((await ada.sees(['webhooks', 'get', id])).plain).toMatch(/\nfailing since +\d{4}-/)

    receiver.respond = ok
    await ada.gets(['webhooks', 'update', id, '--enable'])
    const { id: deliveryId } = await delivered(id, 2)
    expect((await ada.sees(['webhooks', 'deliveries', id])).plain).toMatch(
      /^ID +TYPE +STATUS +ATTEMPTS +LAST RESULT +NEXT ATTEMPT +EVENT\ndlv_\d+ +key\.created +delivered +2 +200, \d+ \w+ ago +– +evt_\w+\n$/,
    )
    expect((await ada.sees(['webhooks', 'redeliver', id, deliveryId])).plain).toMatch(
      /^id +dlv_\d+\nevent +evt_\w+\ntype +key\.created\nstatus +pending\nnext attempt +\d{4}-/,
    )
    expect((await ada.sees(['webhooks', 'replay', id, '--from', '0', '--types', 'node.*'])).plain).toBe(
      'No events in this period match.\n',
    )
    expect((await ada.sees(['webhooks', 'replay', id, '--from', '0'])).plain).toBe('2 events will be sent.\n')
  })
})
