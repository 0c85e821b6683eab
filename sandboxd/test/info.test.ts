import { beforeAll, describe, expect, test } from 'vitest'
import { startNetwork, type TestHub, TestNode } from './harness.ts'

let hub: TestHub
let payer: TestNode
let payee: TestNode

beforeAll(async () => {
  ;({ hub, payer, payee } = await startNetwork({ amountSat: 1_000_000 }))
})

const infoOf = async (node: TestNode): Promise<any> => (await node.get('/getinfo')).json()

describe('getinfo and getbalance', () => {
  test('S20: getinfo has nodeId, channels, chain, blockHeight and version, in this order', async () => {
    const info = await infoOf(payee)
    expect(Object.keys(info)).toEqual(['nodeId', 'channels', 'chain', 'blockHeight', 'version'])
    expect(info.nodeId).toMatch(/^0[23][0-9a-f]{64}$/)
    expect(info.nodeId).toBe(payee.nodeId)
    expect(info.chain).toBe('regtest')
    expect(Number.isInteger(info.blockHeight)).toBe(true)
    expect(info.blockHeight).toBeGreaterThan(0)
    expect(info.version).toMatch(/^0\.8\.0-.{7}$/)
  })

  test('S20: blockHeight is left out while it is unknown, and back when it is known', async () => {
    await payee.control('explorer', { explorer: 'down' })
    const unknown = await payee.get('/getinfo')
    await payee.control('explorer', { explorer: 'up' })
    expect(Object.keys(unknown.json())).toEqual(['nodeId', 'channels', 'chain', 'version'])
    expect(unknown.text).not.toContain('blockHeight')
    expect(await infoOf(payee)).toHaveProperty('blockHeight')
  })

  test('S20: blockHeight grows with time', async () => {
    const traveller = await new TestNode().start()
    const before = (await infoOf(traveller)).blockHeight
    await traveller.control('clock', { advanceSeconds: 86_400 })
    expect((await infoOf(traveller)).blockHeight).toBeGreaterThan(before)
  })

  test('S22: getbalance has two integers; fractions of a satoshi are truncated', async () => {
    const spender = await new TestNode({ hub }).start()
    await hub.fund(spender, 1000)
    expect(await spender.balance()).toEqual({ balanceSat: 1000, feeCreditSat: 0 })
    await spender.pay((await payee.invoice({ amountSat: 1 })).serialized)
    expect((await spender.state()).balanceMsat).toBe(994_996)
    const answer = await spender.get('/getbalance')
    expect(Object.entries(answer.json())).toEqual([
      ['balanceSat', 994],
      ['feeCreditSat', 0],
    ])
  })

  test('S22: an amount too small for a channel is fee credit, not balance', async () => {
    const small = await new TestNode({ hub }).start()
    await small.control('fee-credit', { feeCredit: 'on' })
    await payer.pay((await small.invoice({ amountSat: 1234 })).serialized)
    expect(await small.balance()).toEqual({ balanceSat: 0, feeCreditSat: 1234 })
    expect((await infoOf(small)).channels).toEqual([])
  })

  test('S23: a new node has no channel and no money', async () => {
    const fresh = await new TestNode().start()
    expect((await infoOf(fresh)).channels).toEqual([])
    expect((await fresh.get('/listchannels')).json()).toEqual([])
    expect(await fresh.balance()).toEqual({ balanceSat: 0, feeCreditSat: 0 })
  })
})

describe('channels', () => {
  test('a funded node has one Normal channel, whose parts add up', async () => {
    const rich = await new TestNode().start()
    await rich.fund(70_000)
    const { channels } = await infoOf(rich)
    expect(channels).toHaveLength(1)
    const keys = ['state', 'channelId', 'balanceSat', 'inboundLiquiditySat', 'capacitySat', 'fundingTxId']
    expect(Object.keys(channels[0])).toEqual(keys)
    expect(channels[0]).toMatchObject({ state: 'Normal', balanceSat: 70_000 })
    expect(channels[0].balanceSat + channels[0].inboundLiquiditySat).toBe(channels[0].capacitySat)
    expect(channels[0].channelId).toMatch(/^[0-9a-f]{64}$/)
    expect(channels[0].fundingTxId).toMatch(/^[0-9a-f]{64}$/)
    await rich.fund(1)
    const again = (await infoOf(rich)).channels
    expect(again).toHaveLength(1)
    expect(again[0]).toMatchObject({ balanceSat: 70_001, channelId: channels[0].channelId })
  })

  test('while the peer is down, the channel shows only its state and the balance is 0; both return', async () => {
    const lonely = await new TestNode().start()
    await lonely.fund(5000)
    const before = await infoOf(lonely)
    await lonely.control('peer', { peer: 'down' })
    expect((await infoOf(lonely)).channels).toEqual([{ state: 'Offline(Normal)' }])
    expect(await lonely.balance()).toEqual({ balanceSat: 0, feeCreditSat: 0 })
    const { paymentHash } = await lonely.invoice({ amountSat: 1 })
    expect(await lonely.incoming(paymentHash)).toMatchObject({ isPaid: false })
    await lonely.control('peer', { peer: 'up' })
    expect((await infoOf(lonely)).channels).toEqual(before.channels)
    expect(await lonely.balance()).toEqual({ balanceSat: 5000, feeCreditSat: 0 })
  })

  test('a new node whose peer is down has no channel, not an offline one', async () => {
    const lonely = await new TestNode().start()
    await lonely.control('peer', { peer: 'down' })
    expect((await infoOf(lonely)).channels).toEqual([])
  })
})

describe('how JSON is written', () => {
  /** All JSON responses, each with as many fields without a value as possible. */
  const answers: [what: string, text: string][] = []

  beforeAll(async () => {
    const record = (what: string, { status, headers, text }: Awaited<ReturnType<TestNode['get']>>): any => {
      expect([what, status, headers['content-type']]).toEqual([what, 200, 'application/json'])
      answers.push([what, text])
      return JSON.parse(text)
    }
    const paid = await payee.invoice({ amountSat: 10, externalId: 'ex' })
    record('payinvoice, sent', await payer.post('/payinvoice', { invoice: paid.serialized }))
    record('payinvoice, failed', await payer.post('/payinvoice', { invoice: paid.serialized }))
    const hashed = await payee.post('/createinvoice', { descriptionHash: '00'.repeat(32) })
    const bare = record('createinvoice without an amount', hashed)
    record('decodeinvoice', await payee.post('/decodeinvoice', { invoice: bare.serialized }))
    record('unpaid', await payee.get(`/payments/incoming/${bare.paymentHash}`))
    record('paid', await payee.get(`/payments/incoming/${paid.paymentHash}`))
    record('incoming', await payee.get('/payments/incoming?all=true'))
    await payer.pay(bare.serialized, { amountSat: 900_000_000 })
    record('failed', await payer.get(`/payments/outgoingbyhash/${bare.paymentHash}`))
    const [sent] = record('outgoing', await payer.get('/payments/outgoing?all=true'))
    record('sent', await payer.get(`/payments/outgoing/${sent.paymentId}`))
    record('getinfo with a channel', await payer.get('/getinfo'))
    record('getbalance', await payer.get('/getbalance'))
    record('listchannels', await payer.get('/listchannels'))
    record('estimateliquidityfees', await payer.get('/estimateliquidityfees?amountSat=1000'))
    const offer = (await payee.get('/getoffer')).text
    record('decodeoffer', await payer.post('/decodeoffer', { offer }))
    record('payoffer', await payer.post('/payoffer', { offer, amountSat: 1 }))
    await payer.control('explorer', { explorer: 'down' })
    await payer.control('peer', { peer: 'down' })
    record('getinfo without peer and height', await payer.get('/getinfo'))
    record('listchannels without peer', await payer.get('/listchannels'))
    await payer.control('explorer', { explorer: 'up' })
    await payer.control('peer', { peer: 'up' })
  })

  function nullsIn(value: unknown, path = ''): string[] {
    if (value === null) return [path]
    if (typeof value !== 'object') return []
    return Object.entries(value as object).flatMap(([key, inner]) => nullsIn(inner, `${path}/${key}`))
  }

  test('S21: no null is ever printed', () => {
    expect(answers.length).toBeGreaterThan(15)
    expect(answers.flatMap(([what, text]) => nullsIn(JSON.parse(text)).map((path) => `${what}${path}`))).toEqual([])
    expect(answers.filter(([, text]) => /[:[,]\s*null\b/.test(text))).toEqual([])
  })

  test('S21: fields without a value are left out', () => {
    const parsed = new Map(answers.map(([what, text]) => [what, JSON.parse(text)]))
    expect(parsed.get('createinvoice without an amount')).not.toHaveProperty('amountSat')
    expect(parsed.get('getinfo without peer and height')).not.toHaveProperty('blockHeight')
    for (const field of ['externalId', 'description', 'requestedSat', 'completedAt', 'payerNote', 'payerKey'])
      expect(parsed.get('unpaid')).not.toHaveProperty(field)
    for (const field of ['preimage', 'txId']) expect(parsed.get('failed')).not.toHaveProperty(field)
    for (const field of ['amount', 'description']) expect(parsed.get('decodeinvoice')).not.toHaveProperty(field)
  })

  test('JSON is indented by four spaces', () => {
    for (const [what, text] of answers) expect([what, text]).toEqual([what, JSON.stringify(JSON.parse(text), null, 4)])
  })
})
