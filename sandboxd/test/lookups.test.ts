import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { startNetwork, type TestHub, TestNode } from './harness.ts'

let hub: TestHub
let payer: TestNode
let payee: TestNode

beforeAll(async () => {
  ;({ hub, payer, payee } = await startNetwork({ amountSat: 10_000_000 }))
})

const sha256 = (hex: string): string => createHash('sha256').update(Buffer.from(hex, 'hex')).digest('hex')
const incomingOf = async (node: TestNode, query = ''): Promise<any[]> => (await node.get(`/payments/incoming${query}`)).json()
const outgoingOf = async (node: TestNode, query = ''): Promise<any[]> => (await node.get(`/payments/outgoing${query}`)).json()
const hashes = (payments: any[]): string[] => payments.map(({ paymentHash }) => paymentHash)

async function payFromWallet(invoice: { serialized: string }, amountSat?: number): Promise<void> {
  const answer = await hub.post('/pay', { invoice: invoice.serialized, ...(amountSat === undefined ? {} : { amountSat }) })
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
}

describe('one incoming payment', () => {
  test('S33: unpaid, it has all fields of the invoice, including the preimage, and nothing received', async () => {
    const startedAt = Date.now()
    const invoice = await payee.invoice({ amountSat: 100, description: 'a coffee', externalId: 'order 1', expirySeconds: 600 })
    const found = await payee.incoming(invoice.paymentHash)
    expect(found).toEqual({
      type: 'incoming_payment',
      subType: 'lightning',
      paymentHash: invoice.paymentHash,
      preimage: expect.stringMatching(/^[0-9a-f]{64}$/),
      externalId: 'order 1',
      description: 'a coffee',
      invoice: invoice.serialized,
      isPaid: false,
      isExpired: false,
      requestedSat: 100,
      receivedSat: 0,
      fees: 0,
      expiresAt: found.createdAt + 600_000,
      createdAt: expect.any(Number),
    })
    expect(sha256(found.preimage)).toBe(invoice.paymentHash)
    expect(found.createdAt).toBeGreaterThanOrEqual(startedAt)
    expect(found.createdAt).toBeLessThanOrEqual(Date.now())
    expect(Object.keys(found)).not.toContain('completedAt')
  })

  test('S33: fields are in phoenixd’s order', async () => {
    const invoice = await payee.invoice({ amountSat: 1, externalId: 'x' })
    await payFromWallet(invoice)
    expect(Object.keys(await payee.incoming(invoice.paymentHash))).toEqual([
      'type',
      'subType',
      'paymentHash',
      'preimage',
      'externalId',
      'description',
      'invoice',
      'isPaid',
      'isExpired',
      'requestedSat',
      'receivedSat',
      'fees',
      'expiresAt',
      'completedAt',
      'createdAt',
    ])
  })

  test('S33: isExpired flips when the expiry has passed, and stays', async () => {
    const traveller = await new TestNode().start()
    const { paymentHash } = await traveller.invoice({ amountSat: 1, expirySeconds: 3600 })
    expect(await traveller.incoming(paymentHash)).toMatchObject({ isPaid: false, isExpired: false })
    await traveller.control('clock', { advanceSeconds: 3000 })
    expect((await traveller.incoming(paymentHash)).isExpired).toBe(false)
    await traveller.control('clock', { advanceSeconds: 601 })
    const expired = await traveller.incoming(paymentHash)
    expect(expired).toMatchObject({ isPaid: false, isExpired: true, receivedSat: 0, fees: 0 })
    expect(expired).not.toHaveProperty('completedAt')
    await traveller.restart('SIGTERM')
    expect(await traveller.incoming(paymentHash)).toEqual(expired)
  })

  test('S34: paid, it says when and how much', async () => {
    const invoice = await payee.invoice({ amountSat: 100 })
    const before = await payee.incoming(invoice.paymentHash)
    const sent = await payer.pay(invoice.serialized)
    const after = await payee.incoming(invoice.paymentHash)
    expect(after).toEqual({ ...before, isPaid: true, receivedSat: 100, completedAt: expect.any(Number) })
    expect(after.completedAt).toBeGreaterThanOrEqual(after.createdAt)
    expect(after.completedAt).toBeLessThanOrEqual(Date.now())
    expect(after.preimage).toBe(sent.paymentPreimage)
  })

  test('S34: receivedSat is the amount received, requestedSat the amount requested', async () => {
    const generous = await payee.invoice({ amountSat: 100 })
    await payFromWallet(generous, 150)
    expect(await payee.incoming(generous.paymentHash)).toMatchObject({ isPaid: true, requestedSat: 100, receivedSat: 150 })
    const open = await payee.invoice()
    await payFromWallet(open, 33)
    const found = await payee.incoming(open.paymentHash)
    expect(found).toMatchObject({ isPaid: true, receivedSat: 33 })
    expect(found).not.toHaveProperty('requestedSat')
  })

  test('S34: completedAt is the time of the payment, not of the invoice or the lookup', async () => {
    const traveller = await new TestNode({ hub }).start()
    const invoice = await traveller.invoice({ amountSat: 5 })
    await traveller.control('clock', { advanceSeconds: 1000 })
    await payFromWallet(invoice)
    await traveller.control('clock', { advanceSeconds: 1000 })
    const { createdAt, completedAt } = await traveller.incoming(invoice.paymentHash)
    expect(completedAt - createdAt).toBeGreaterThanOrEqual(1_000_000)
    expect(completedAt - createdAt).toBeLessThan(1_500_000)
  })

  test('a paid invoice also shows as expired after its expiry', async () => {
    const traveller = await new TestNode({ hub }).start()
    const invoice = await traveller.invoice({ amountSat: 5, expirySeconds: 3600 })
    await payFromWallet(invoice)
    await traveller.control('clock', { advanceSeconds: 3601 })
    expect(await traveller.incoming(invoice.paymentHash)).toMatchObject({ isPaid: true, isExpired: true })
  })

  test.each(['/payments/incoming/', '/payments/outgoingbyhash/'])('S35: an unknown hash is 404 on %s', async (path) => {
    for (const node of [payee, payer]) {
      const answer = await node.get(path + 'ab'.repeat(32))
      expect([answer.status, answer.headers['content-type'], answer.text]).toEqual([
        404,
        'text/plain; charset=UTF-8',
        'Not found',
      ])
    }
  })

  test('S35: an unknown id is 404, and so is a hash that only the other side knows', async () => {
    const unknown = await payer.get('/payments/outgoing/7a4c5e3e-7d1c-4d5b-9d3c-0f3c2b1a0987')
    expect([unknown.status, unknown.text]).toEqual([404, 'Not found'])
    const invoice = await payee.invoice({ amountSat: 1 })
    await payer.pay(invoice.serialized)
    expect((await payer.get(`/payments/incoming/${invoice.paymentHash}`)).status).toBe(404)
    expect((await payee.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).status).toBe(404)
  })

  test.each(['0'.repeat(63), '0'.repeat(65), 'x'.repeat(64), '00', '%20', `0x${'0'.repeat(62)}`])(
    'S35: %s is not a hash',
    async (hash) => {
      for (const path of ['/payments/incoming/', '/payments/outgoingbyhash/']) {
        const answer = await payee.get(path + hash)
        const sentence = "Request parameter paymentHash couldn't be parsed/converted to hex32"
        expect([answer.status, answer.text]).toEqual([400, sentence])
      }
    },
  )

  test('S35: a hash in capital letters is the same hash', async () => {
    const { paymentHash } = await payee.invoice()
    expect(await payee.incoming(paymentHash.toUpperCase())).toEqual(await payee.incoming(paymentHash))
  })
})

describe('the list of incoming payments', () => {
  /** The number of invoices. They are created one second apart, and every third is paid, in reverse order of creation. */
  const COUNT = 30
  let shop: TestNode
  const created: string[] = []
  const paid: string[] = []

  beforeAll(async () => {
    shop = await new TestNode({ hub }).start()
    const invoices: { paymentHash: string; serialized: string }[] = []
    for (let at = 0; at < COUNT; at++) {
      const invoice = await shop.invoice({ amountSat: at + 1, description: `no. ${at}`, externalId: `customer ${at % 2} & co` })
      invoices.push(invoice)
      created.push(invoice.paymentHash)
      await shop.control('clock', { advanceSeconds: 1 })
    }
    for (const invoice of invoices.filter((_, at) => at % 3 === 0).reverse()) {
      await payFromWallet(invoice)
      paid.push(invoice.paymentHash)
      await shop.control('clock', { advanceSeconds: 1 })
    }
  })

  const newest = (list: string[]): string[] => list.toReversed()

  test('S36: by default, the list has only received payments, the last received first', async () => {
    const list = await incomingOf(shop)
    expect(hashes(list)).toEqual(newest(paid))
    expect(list.every(({ isPaid }) => isPaid)).toBe(true)
    expect(hashes(await incomingOf(shop, '?all=false'))).toEqual(newest(paid))
    expect(hashes(await incomingOf(shop, '?all=nonsense'))).toEqual(newest(paid))
  })

  test('S36: all=true also lists unpaid invoices, the last created first, up to 20', async () => {
    const list = await incomingOf(shop, '?all=true')
    expect(hashes(list)).toEqual(newest(created).slice(0, 20))
    expect(list.filter(({ isPaid }) => isPaid).length).toBeGreaterThan(0)
    expect(list.filter(({ isPaid }) => !isPaid).length).toBeGreaterThan(0)
  })

  test('S36: the default limit of 20 holds for received payments as well', async () => {
    const busy = await new TestNode({ hub }).start()
    const invoices = await Promise.all(Array.from({ length: 22 }, () => busy.invoice({ amountSat: 1 })))
    await Promise.all(invoices.map((invoice) => payFromWallet(invoice)))
    expect(await incomingOf(busy)).toHaveLength(20)
    expect(await incomingOf(busy, '?limit=100')).toHaveLength(22)
  })

  test.each([0, 1, 7, 20, 21, 30, 31, 1000])('S36: limit=%s', async (limit) => {
    expect(hashes(await incomingOf(shop, `?all=true&limit=${limit}`))).toEqual(newest(created).slice(0, limit))
  })

  test.each([0, 1, 10, 29, 30, 31])('S36: offset=%s', async (offset) => {
    expect(hashes(await incomingOf(shop, `?all=true&offset=${offset}`))).toEqual(newest(created).slice(offset, offset + 20))
    expect(hashes(await incomingOf(shop, `?offset=${offset}`))).toEqual(newest(paid).slice(offset, offset + 20))
  })

  test('S36: all pages together are the complete list, with each payment once', async () => {
    const pages: string[] = []
    for (let offset = 0; offset < COUNT + 7; offset += 7) {
      pages.push(...hashes(await incomingOf(shop, `?all=true&limit=7&offset=${offset}`)))
    }
    expect(pages).toEqual(newest(created))
  })

  test('S36: each entry equals the lookup by hash', async () => {
    for (const entry of await incomingOf(shop, '?all=true&limit=5')) expect(entry).toEqual(await shop.incoming(entry.paymentHash))
  })

  test('S36: externalId filters, before the limit; several invoices may share one', async () => {
    const query = `externalId=${encodeURIComponent('customer 1 & co')}`
    const mine = created.filter((_, at) => at % 2 === 1)
    expect(hashes(await incomingOf(shop, `?all=true&${query}`))).toEqual(newest(mine))
    expect(hashes(await incomingOf(shop, `?all=true&limit=3&offset=2&${query}`))).toEqual(newest(mine).slice(2, 5))
    expect(hashes(await incomingOf(shop, `?${query}`))).toEqual(newest(paid).filter((hash) => mine.includes(hash)))
    expect(await incomingOf(shop, '?all=true&externalId=customer')).toEqual([])
  })

  test('S36: from and to are inclusive, in ms; with all=true they apply to the creation', async () => {
    const times = (await incomingOf(shop, '?all=true&limit=-1')).reverse().map(({ createdAt }) => createdAt)
    expect(new Set(times).size).toBe(COUNT)
    const between = async (from: number, to: number): Promise<string[]> =>
      hashes(await incomingOf(shop, `?all=true&limit=-1&from=${from}&to=${to}`))
    expect(await between(times[5], times[9])).toEqual(newest(created.slice(5, 10)))
    expect(await between(times[5] + 1, times[9] - 1)).toEqual(newest(created.slice(6, 9)))
    expect(await between(times[5], times[5])).toEqual([created[5]])
    expect(await between(times[9], times[5])).toEqual([])
    expect(hashes(await incomingOf(shop, `?all=true&limit=-1&from=${times[25]}`))).toEqual(newest(created.slice(25)))
    expect(hashes(await incomingOf(shop, `?all=true&limit=-1&to=${times[4]}`))).toEqual(newest(created.slice(0, 5)))
    expect(await between(0, Math.floor(times[0] / 1000))).toEqual([])
  })

  test('S36: without all, from and to apply to the receipt', async () => {
    const times = (await incomingOf(shop)).reverse().map(({ completedAt }) => completedAt)
    expect(new Set(times).size).toBe(paid.length)
    const between = async (from: number, to: number): Promise<string[]> =>
      hashes(await incomingOf(shop, `?from=${from}&to=${to}`))
    expect(await between(times[2], times[4])).toEqual(newest(paid.slice(2, 5)))
    expect(await between(times[2] + 1, times[4] - 1)).toEqual([paid[3]])
    const lastCreation = (await shop.incoming(created.at(-1) ?? '')).createdAt
    expect(await between(0, lastCreation)).toEqual([])
  })

  test('S36: a restart changes nothing in the lists', async () => {
    const [received, all] = [await incomingOf(shop), await incomingOf(shop, '?all=true&limit=-1')]
    await shop.restart()
    expect(await incomingOf(shop)).toEqual(received)
    expect(await incomingOf(shop, '?all=true&limit=-1')).toEqual(all)
  })

  test('S36: a new node has empty lists', async () => {
    const fresh = await new TestNode().start()
    expect(await incomingOf(fresh, '?all=true')).toEqual([])
    expect(await outgoingOf(fresh, '?all=true')).toEqual([])
  })
})

describe('the list of outgoing payments', () => {
  test('S36: limit, offset, from and to work as for incoming ones', async () => {
    const spender = await new TestNode({ hub }).start()
    await hub.fund(spender, 100_000)
    const sent: string[] = []
    for (let at = 0; at < 5; at++) {
      sent.push((await spender.pay((await payee.invoice({ amountSat: 10 })).serialized)).paymentId)
      await spender.control('clock', { advanceSeconds: 1 })
    }
    const ids = async (query: string): Promise<string[]> => (await outgoingOf(spender, query)).map(({ paymentId }) => paymentId)
    expect((await ids('')).sort()).toEqual(sent.toSorted())
    expect(await ids('?limit=2')).toHaveLength(2)
    expect([...(await ids('?limit=3')), ...(await ids('?limit=3&offset=3'))].sort()).toEqual(sent.toSorted())
    const [, second, third, fourth] = await outgoingOf(spender)
    expect(await ids(`?from=${second.completedAt}&to=${fourth.completedAt}`)).toEqual(
      [second, third, fourth].map(({ paymentId }) => paymentId),
    )
  })
})

describe('constants and units', () => {
  test('S37: type and subType of incoming payments, in lists and lookups, paid and unpaid', async () => {
    const invoice = await payee.invoice({ amountSat: 2 })
    const constants = { type: 'incoming_payment', subType: 'lightning' }
    expect(await payee.incoming(invoice.paymentHash)).toMatchObject(constants)
    await payer.pay(invoice.serialized)
    expect(await payee.incoming(invoice.paymentHash)).toMatchObject(constants)
    for (const entry of await incomingOf(payee, '?all=true')) expect(entry).toMatchObject(constants)
  })

  test('S37: type and subType of outgoing payments, and their fields in phoenixd’s order', async () => {
    const invoice = await payee.invoice({ amountSat: 2 })
    const { paymentId } = await payer.pay(invoice.serialized)
    const constants = { type: 'outgoing_payment', subType: 'lightning' }
    for (const path of [
      `outgoing/${paymentId}`,
      `outgoing/${paymentId.toUpperCase()}`,
      `outgoingbyhash/${invoice.paymentHash}`,
    ]) {
      const found = (await payer.get(`/payments/${path}`)).json()
      expect(found).toMatchObject(constants)
      expect(Object.keys(found)).toEqual([
        'type',
        'subType',
        'paymentId',
        'paymentHash',
        'preimage',
        'isPaid',
        'sent',
        'fees',
        'invoice',
        'completedAt',
        'createdAt',
      ])
    }
    for (const entry of await outgoingOf(payer, '?all=true')) expect(entry).toMatchObject(constants)
  })

  test('S38: the fee of an outgoing payment is in msat, the sent amount in sat', async () => {
    const { paymentHash, serialized } = await payee.invoice({ amountSat: 124 })
    await payer.pay(serialized)
    expect((await payer.get(`/payments/outgoingbyhash/${paymentHash}`)).json()).toMatchObject({ sent: 128, fees: 4_496 })
  })

  test('S38: the liquidity fee of an incoming payment is in msat, the received amount in sat', async () => {
    const buyer = await new TestNode({ hub }).start()
    await buyer.control('fee-credit', { feeCredit: 'on' })
    const { miningFeeSat, serviceFeeSat } = (await buyer.get('/estimateliquidityfees?amountSat=2000000')).json()
    const feeSat = miningFeeSat + serviceFeeSat
    expect(feeSat).toBeGreaterThan(0)
    const invoice = await buyer.invoice({ amountSat: 100_000 })
    await payer.pay(invoice.serialized)
    const found = await buyer.incoming(invoice.paymentHash)
    expect(found).toMatchObject({ isPaid: true, requestedSat: 100_000, receivedSat: 100_000 - feeSat, fees: feeSat * 1000 })
    expect(await buyer.balance()).toEqual({ balanceSat: 100_000 - feeSat, feeCreditSat: 0 })
    const second = await buyer.invoice({ amountSat: 1000 })
    await payer.pay(second.serialized)
    expect(await buyer.incoming(second.paymentHash)).toMatchObject({ receivedSat: 1000, fees: 0 })
  })

  test('S38: what goes to the fee credit costs nothing and counts as received', async () => {
    const saver = await new TestNode({ hub }).start()
    await saver.control('fee-credit', { feeCredit: 'on' })
    const invoice = await saver.invoice({ amountSat: 5000 })
    await payer.pay(invoice.serialized)
    expect(await saver.incoming(invoice.paymentHash)).toMatchObject({ isPaid: true, receivedSat: 5000, fees: 0 })
    expect(await saver.balance()).toEqual({ balanceSat: 0, feeCreditSat: 5000 })
  })
})
