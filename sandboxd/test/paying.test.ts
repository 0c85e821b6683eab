import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually, startNetwork, type TestHub, TestNode } from './harness.ts'

let hub: TestHub
let payer: TestNode
let payee: TestNode

beforeAll(async () => {
  ;({ hub, payer, payee } = await startNetwork())
})

const sha256 = (hex: string): string => createHash('sha256').update(Buffer.from(hex, 'hex')).digest('hex')
const moneyOf = async (...nodes: TestNode[]): Promise<number[]> =>
  Promise.all(nodes.map(async (node) => (await node.state()).balanceMsat))

describe('a payment that arrives', () => {
  test('S39: the payer gets amount, fee, id, hash and a valid preimage; the payee is paid before that response', async () => {
    const invoice = await payee.invoice({ amountSat: 1000 })
    const sent = await payer.pay(invoice.serialized)
    const received = await payee.incoming(invoice.paymentHash)
    expect(Object.keys(sent)).toEqual(['recipientAmountSat', 'routingFeeSat', 'paymentId', 'paymentHash', 'paymentPreimage'])
    expect(sent).toMatchObject({ recipientAmountSat: 1000, routingFeeSat: 8, paymentHash: invoice.paymentHash })
    expect(sent.paymentId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(sha256(sent.paymentPreimage)).toBe(invoice.paymentHash)
    expect(received).toMatchObject({ isPaid: true, receivedSat: 1000, preimage: sent.paymentPreimage })
  })

  test.each([
    { amountSat: 1, feeMsat: 4_004 },
    { amountSat: 124, feeMsat: 4_496 },
    { amountSat: 1000, feeMsat: 8_000 },
    { amountSat: 12_345, feeMsat: 53_380 },
  ])(
    'S40: $amountSat sat cost the payer the amount and $feeMsat msat, and the payee gets the amount',
    async ({ amountSat, feeMsat }) => {
      const [payerBefore = 0, payeeBefore = 0] = await moneyOf(payer, payee)
      const sent = await payer.pay((await payee.invoice({ amountSat })).serialized)
      const [payerAfter = 0, payeeAfter = 0] = await moneyOf(payer, payee)
      expect(payerBefore - payerAfter).toBe(amountSat * 1000 + feeMsat)
      expect(payeeAfter - payeeBefore).toBe(amountSat * 1000)
      expect(sent.routingFeeSat).toBe(Math.floor(feeMsat / 1000))
      expect(await payer.balance()).toEqual({ balanceSat: Math.floor(payerAfter / 1000), feeCreditSat: 0 })
    },
  )

  test('S40: the first payment to a node without a channel opens one at no fee', async () => {
    const fresh = await new TestNode({ hub }).start()
    await payer.pay((await fresh.invoice({ amountSat: 21 })).serialized)
    expect(await fresh.balance()).toEqual({ balanceSat: 21, feeCreditSat: 0 })
    const [channel] = (await fresh.get('/getinfo')).json().channels
    expect(channel).toMatchObject({ state: 'Normal', balanceSat: 21, inboundLiquiditySat: 2_000_000, capacitySat: 2_000_021 })
  })

  test('S47: an amountless invoice needs amountSat, and that amount arrives', async () => {
    const invoice = await payee.invoice()
    const refused = await payer.post('/payinvoice', { invoice: invoice.serialized })
    expect([refused.status, refused.text]).toEqual([400, 'Request parameter amountSat is missing'])
    const sent = await payer.pay(invoice.serialized, { amountSat: 77 })
    expect(sent.recipientAmountSat).toBe(77)
    expect((await payee.incoming(invoice.paymentHash)).receivedSat).toBe(77)
  })

  test('S48: amountSat together with sendAll is refused', async () => {
    const invoice = await payee.invoice()
    const answer = await payer.post('/payinvoice', { invoice: invoice.serialized, amountSat: 1, sendAll: '' })
    expect([answer.status, answer.text]).toEqual([400, 'Cannot use both amountSat and sendAll request parameters'])
  })

  test('sendAll leaves a remainder of 0: of 1000 sat 992032 msat arrive, the fee is 7968 msat', async () => {
    const emptied = await new TestNode({ hub }).start()
    await hub.fund(emptied, 1000)
    const [before = 0] = await moneyOf(payee)
    await emptied.pay((await payee.invoice()).serialized, { sendAll: '' })
    const [left, after = 0] = await moneyOf(emptied, payee)
    expect([left, after - before]).toEqual([0, 992_032])
  })

  test('sendAll without a channel counts as not given', async () => {
    const poor = await new TestNode({ hub }).start()
    const amountless = await poor.post('/payinvoice', { invoice: (await payee.invoice()).serialized, sendAll: '' })
    expect([amountless.status, amountless.text]).toEqual([400, 'Request parameter amountSat is missing'])
  })
})

describe('a payment that does not arrive is a 200 with a reason, and moves nothing', () => {
  const expectRefusal = async (
    node: TestNode,
    invoice: { serialized: string; paymentHash: string },
    reason: string,
    form = {},
  ) => {
    const before = await moneyOf(payer, payee)
    expect(await node.pay(invoice.serialized, form)).toEqual({ paymentHash: invoice.paymentHash, reason })
    expect(await moneyOf(payer, payee)).toEqual(before)
  }

  test('S41: the second payment of one invoice', async () => {
    const invoice = await payee.invoice({ amountSat: 5 })
    await payer.pay(invoice.serialized)
    await expectRefusal(payer, invoice, 'this invoice has already been paid')
  })

  test('S42: of twenty concurrent payments of one invoice, exactly one succeeds', async () => {
    const invoice = await payee.invoice({ amountSat: 5 })
    const [before = 0] = await moneyOf(payee)
    const results = await Promise.all(Array.from({ length: 20 }, () => payer.pay(invoice.serialized)))
    expect(results.filter((result) => 'paymentPreimage' in result)).toHaveLength(1)
    for (const { reason } of results.filter((result) => 'reason' in result)) {
      expect(['another payment is in progress for that invoice', 'this invoice has already been paid']).toContain(reason)
    }
    const [after] = await moneyOf(payee)
    expect(after).toBe(before + 5000)
  })

  test('S43: more than the balance, by one millisatoshi of fee', async () => {
    const tight = await new TestNode({ hub }).start()
    await hub.fund(tight, 1004)
    await expectRefusal(tight, await payee.invoice({ amountSat: 1000 }), 'not enough funds in wallet to afford payment')
    await tight.fund(4)
    expect(await tight.pay((await payee.invoice({ amountSat: 1000 })).serialized)).toHaveProperty('paymentPreimage')
  })

  test('S43: concurrent payments cannot spend more than the balance', async () => {
    const tight = await new TestNode({ hub }).start()
    await hub.fund(tight, 1000)
    const invoices = await Promise.all(Array.from({ length: 10 }, () => payee.invoice({ amountSat: 300 })))
    const results = await Promise.all(invoices.map(({ serialized }) => tight.pay(serialized)))
    expect(results.filter((result) => 'paymentPreimage' in result)).toHaveLength(3)
    expect((await tight.state()).balanceMsat).toBe(1_000_000 - 3 * 305_200)
  })

  test('S44: a node without a channel', async () => {
    const poor = await new TestNode({ hub }).start()
    const reason = 'payment could not be sent through existing channels, check individual failures for more details'
    await expectRefusal(poor, await payee.invoice({ amountSat: 1 }), reason)
  })

  test('S45: a stopped recipient; it can be paid when it is back', async () => {
    const sleeper = await new TestNode({ hub }).start()
    const invoice = await sleeper.invoice({ amountSat: 10 })
    await sleeper.daemon.kill('SIGTERM')
    await expectRefusal(payer, invoice, 'recipient node is offline or unreachable')
    await sleeper.start()
    expect(await payer.pay(invoice.serialized)).toHaveProperty('paymentPreimage')
  })

  test('S45: a recipient unknown to the hub, and any recipient for a node without a hub', async () => {
    const stranger = await new TestNode().start()
    await stranger.fund(1000)
    await expectRefusal(payer, await stranger.invoice({ amountSat: 10 }), 'recipient node is offline or unreachable')
    await expectRefusal(stranger, await payee.invoice({ amountSat: 10 }), 'recipient node is offline or unreachable')
  })

  test('S46: expired', async () => {
    const invoice = await payee.invoice({ amountSat: 10, expirySeconds: 5 })
    await payee.control('clock', { advanceSeconds: 6 })
    await expectRefusal(payer, invoice, 'recipient node rejected the payment')
  })

  test('S46: underpaid, and overpaid by more than double; exactly double is accepted', async () => {
    const invoice = await payee.invoice({ amountSat: 10 })
    await expectRefusal(payer, invoice, 'recipient node rejected the payment', { amountSat: 9 })
    await expectRefusal(payer, invoice, 'recipient node rejected the payment', { amountSat: 21 })
    expect(await payer.pay(invoice.serialized, { amountSat: 20 })).toMatchObject({ recipientAmountSat: 20 })
  })

  test('S46: already paid by someone else', async () => {
    const invoice = await payee.invoice({ amountSat: 10 })
    expect((await hub.post('/pay', { invoice: invoice.serialized })).status).toBe(200)
    await expectRefusal(payer, invoice, 'recipient node rejected the payment')
  })

  test.each([{ amountSat: 0 }, { amountSat: -1 }])('an amount of $amountSat must be positive', async ({ amountSat }) => {
    await expectRefusal(payer, await payee.invoice(), 'payment amount must be positive', { amountSat })
  })
})

describe('looking up an outgoing payment', () => {
  test('S49: by id and by hash are the same object', async () => {
    const invoice = await payee.invoice({ amountSat: 1000 })
    const sent = await payer.pay(invoice.serialized)
    const byId = (await payer.get(`/payments/outgoing/${sent.paymentId}`)).json()
    expect(byId).toEqual((await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json())
    expect(byId).toMatchObject({
      type: 'outgoing_payment',
      subType: 'lightning',
      paymentId: sent.paymentId,
      preimage: sent.paymentPreimage,
      isPaid: true,
      sent: 1008,
      fees: 8000,
      invoice: invoice.serialized,
    })
    expect(byId.completedAt).toBeGreaterThanOrEqual(byId.createdAt)
  })

  test('S49: a failed attempt has isPaid false and completedAt; after a later success, the lookup by hash returns the success', async () => {
    const invoice = await payee.invoice({ amountSat: 10 })
    await payer.pay(invoice.serialized, { amountSat: 9 })
    const failed = (await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json()
    expect(failed).toMatchObject({ isPaid: false, sent: 9, fees: 0 })
    expect(failed.completedAt).toBeTypeOf('number')
    expect(failed).not.toHaveProperty('preimage')
    await payer.pay(invoice.serialized)
    expect((await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json().isPaid).toBe(true)
    const all = (await payer.get('/payments/outgoing?all=true&limit=-1'))
      .json()
      .filter((one: any) => one.paymentHash === invoice.paymentHash)
    const sent = (await payer.get('/payments/outgoing?limit=-1'))
      .json()
      .filter((one: any) => one.paymentHash === invoice.paymentHash)
    expect([all.length, sent.length]).toEqual([2, 1])
  })

  test('S49: refused as already paid leaves no row; refused for lack of money leaves a failed one', async () => {
    const poor = await new TestNode({ hub }).start()
    await hub.fund(poor, 1)
    await poor.pay((await payee.invoice({ amountSat: 50 })).serialized)
    expect((await poor.get('/payments/outgoing?all=true')).json()).toHaveLength(1)
    const invoice = await payee.invoice({ amountSat: 5 })
    await payer.pay(invoice.serialized)
    const before = (await payer.get('/payments/outgoing?all=true&limit=-1')).json().length
    await payer.pay(invoice.serialized)
    expect((await payer.get('/payments/outgoing?all=true&limit=-1')).json()).toHaveLength(before)
  })
})

describe('a payment that takes long', () => {
  test('S50: a held payment hangs, shows as pending and blocks a second one, and a restart resolves it', async () => {
    const invoice = await payee.invoice({ amountSat: 30 })
    const [before = 0] = await moneyOf(payer)
    await payer.control('payments', { payments: 'hold' })
    const hanging = payer.pay(invoice.serialized).catch((error: Error) => error)
    const pending = await eventually(
      async () => (await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json(),
      'a row',
    )
    expect(pending).toMatchObject({ isPaid: false, sent: 30 })
    expect(pending).not.toHaveProperty('completedAt')
    expect((await payer.pay(invoice.serialized)).reason).toBe('another payment is in progress for that invoice')
    expect((await payer.state()).balanceMsat).toBe(before - 30_000 - 4_120)
    await payer.restart()
    expect(await hanging).toBeInstanceOf(Error)
    const row = await eventually(async () => {
      const now = (await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json()
      return now.completedAt && now
    }, 'the payment to end')
    expect(row.isPaid).toBe(true)
    expect((await payee.incoming(invoice.paymentHash)).isPaid).toBe(true)
  })

  test('S50: when a held payment is released, it succeeds and its caller gets the answer', async () => {
    const invoice = await payee.invoice({ amountSat: 30 })
    await payer.control('payments', { payments: 'hold' })
    const held = payer.pay(invoice.serialized)
    await eventually(async () => (await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json(), 'a row')
    expect((await payee.incoming(invoice.paymentHash)).isPaid).toBe(false)
    await payer.control('payments', { payments: 'normal' })
    expect(await held).toHaveProperty('paymentPreimage')
  })

  test('a payment can be made to fail with a chosen reason, and moves nothing', async () => {
    const invoice = await payee.invoice({ amountSat: 30 })
    const before = await moneyOf(payer, payee)
    await payer.control('payments', { payments: 'fail', reason: 'too many pending payments' })
    expect(await payer.pay(invoice.serialized)).toEqual({ paymentHash: invoice.paymentHash, reason: 'too many pending payments' })
    await payer.control('payments', { payments: 'normal' })
    expect(await moneyOf(payer, payee)).toEqual(before)
    expect(await payer.pay(invoice.serialized)).toHaveProperty('paymentPreimage')
  })

  test('without a block height a payment waits', async () => {
    const invoice = await payee.invoice({ amountSat: 3 })
    await payer.control('explorer', { explorer: 'down' })
    const waiting = payer.pay(invoice.serialized)
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect((await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).status).toBe(404)
    await payer.control('explorer', { explorer: 'up' })
    expect(await waiting).toHaveProperty('paymentPreimage')
  })
})
