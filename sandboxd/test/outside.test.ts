import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { bech32, bech32m } from '@scure/base'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { decodeOffer, encodeOffer } from '../src/lightning/offer.ts'
import { type Answer, LIMITED, readText, startNetwork, type TestHub, TestNode } from './harness.ts'

let hub: TestHub
/** A node with money and a channel. */
let rich: TestNode
/** A node with neither money nor a channel. */
let poor: TestNode

beforeAll(async () => {
  ;({ hub, payer: rich, payee: poor } = await startNetwork({ amountSat: 1_000_000 }))
})

const TEXT = 'text/plain; charset=UTF-8'
function expectText(answer: Answer, status: number, text: string | RegExp): void {
  expect([answer.status, answer.headers['content-type']]).toEqual([status, TEXT])
  if (typeof text === 'string') expect(answer.text).toBe(text)
  else expect(answer.text).toMatch(text)
}
const missing = (name: string): string => `Request parameter ${name} is missing`
const malformed = (name: string, type: string): string => `Request parameter ${name} couldn't be parsed/converted to ${type}`

describe('offers', () => {
  test('getoffer is always the same offer, the one printed at the start', async () => {
    const offer = await poor.get('/getoffer')
    expectText(offer, 200, /^lno1[qpzry9x8gf2tvdw0s3jn54khce6mua7l]+$/)
    expect((await poor.get('/getoffer')).text).toBe(offer.text)
    expect(poor.daemon.stdout).toContain(`offer: ${offer.text}\n`)
    expect((await rich.get('/getoffer')).text).not.toBe(offer.text)
  })

  test('createoffer returns a different offer each time', async () => {
    const offers = await Promise.all([1, 2, 3].map(() => poor.post('/createoffer')))
    for (const offer of offers) expectText(offer, 200, /^lno1[qpzry9x8gf2tvdw0s3jn54khce6mua7l]+$/)
    expect(new Set([...offers.map(({ text }) => text), (await poor.get('/getoffer')).text]).size).toBe(4)
  })

  test.each([
    { form: {}, fields: {} },
    { form: { description: 'Grüße 😀' }, fields: { description: 'Grüße 😀' } },
    { form: { description: '' }, fields: { description: '' } },
    { form: { description: 'x'.repeat(128) }, fields: { description: 'x'.repeat(128) } },
    { form: { description: '漢'.repeat(128) }, fields: { description: '漢'.repeat(128) } },
    { form: { description: 'd', amountSat: 1 }, fields: { description: 'd', amount: 1000 } },
    { form: { description: 'd', amountSat: 281_474_976 }, fields: { description: 'd', amount: 281_474_976_000 } },
    {
      form: { description: 'd', amountSat: 9_007_199_254_740 },
      fields: { description: 'd', amount: 9_007_199_254_740_000 },
    },
  ])('decodeoffer returns what createoffer was given: $form', async ({ form, fields }) => {
    const offer = (await poor.post('/createoffer', form as Record<string, string | number>)).text
    const answer = await rich.post('/decodeoffer', { offer })
    expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
    expect(answer.json()).toMatchObject({ chain: 'regtest', ...fields })
    for (const absent of ['amount', 'description'].filter((field) => !(field in fields)))
      expect(answer.json()).not.toHaveProperty(absent)
  })

  test('an offer may be in upper case', async () => {
    const offer = (await poor.get('/getoffer')).text
    const lower = (await rich.post('/decodeoffer', { offer })).json()
    expect((await rich.post('/decodeoffer', { offer: offer.toUpperCase() })).json()).toEqual(lower)
  })

  test('an amount needs a description, a description at most 128 UTF-16 units', async () => {
    expectText(await poor.post('/createoffer', { amountSat: 5 }), 400, 'Must provide a description if an amount is specified')
    const long = await poor.post('/createoffer', { description: 'x'.repeat(129) })
    expectText(long, 400, 'Request parameter description is too long (max 128 characters)')
  })

  test.each(['', 'abc', 'lno1', 'lno1qqqq', 'lno1bbbb', 'lnbcrt1qqqq', 'LNO1pqps7'])('%j is not an offer', async (offer) => {
    expectText(await rich.post('/decodeoffer', { offer }), 400, malformed('offer', 'offer'))
    expectText(await rich.post('/payoffer', { offer, amountSat: 1 }), 400, malformed('offer', 'offer'))
  })

  test('payoffer fails as a payment fails: 200, the offer’s id and a reason; nothing is spent or listed', async () => {
    const offer = (await poor.post('/createoffer', { description: 'd', amountSat: 7 })).text
    const before = await rich.state()
    const answer = await rich.post('/payoffer', { offer, message: 'hello' })
    expect(answer.status).toBe(200)
    expect(answer.json()).toEqual({
      offerId: expect.stringMatching(/^[0-9a-f]{64}$/),
      reason: expect.stringMatching(/./),
    })
    expect((await rich.state()).balanceMsat).toBe(before.balanceMsat)
    expect((await rich.get('/payments/outgoing?all=true')).json()).toEqual([])
    const other = (await poor.get('/getoffer')).text
    expect((await rich.post('/payoffer', { offer: other, amountSat: 1 })).json().offerId).not.toBe(answer.json().offerId)
  })

  test('payoffer of an offer without an amount needs one, and only one', async () => {
    const offer = (await poor.get('/getoffer')).text
    expectText(await rich.post('/payoffer', { offer }), 400, missing('amountSat'))
    const both = await rich.post('/payoffer', { offer, amountSat: 1, sendAll: '' })
    expectText(both, 400, 'Cannot use both amountSat and sendAll request parameters')
    expectText(await poor.post('/payoffer', { offer, sendAll: '' }), 400, missing('amountSat'))
    expect((await rich.post('/payoffer', { offer, sendAll: '' })).json()).toHaveProperty('offerId')
  })

  const texts = fc
    .array(fc.oneof(fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }), fc.constantFrom('a', '漢', '😀', '\0', '\n')), {
      maxLength: 128,
      size: 'max',
    })
    .map((pieces) => pieces.reduce((text, piece) => (text.length + piece.length <= 128 ? text + piece : text), ''))
  const nodeId = `02${'79'.repeat(32)}`

  test('an encoded offer decodes to the same values', () => {
    const property = fc.property(
      fc.option(fc.integer({ min: 0, max: 281_474_976_710_655 }), { nil: undefined }),
      texts,
      fc.uint8Array({ maxLength: 300, size: 'max' }),
      (amountMsat, description, metadata) => {
        const text = encodeOffer({ nodeId, description, metadata, ...(amountMsat === undefined ? {} : { amountMsat }) })
        const offer = decodeOffer(text)
        expect(offer).toMatchObject({ description, issuerId: nodeId, metadata: Buffer.from(metadata).toString('hex') })
        expect(offer.amountMsat).toBe(amountMsat)
        expect(decodeOffer(`${text.slice(0, 20)}+\n  ${text.slice(20)}`)).toEqual(offer)
      },
    )
    fc.assert(property, { numRuns: 300 })
  })

  test('a description that begins with a byte order mark keeps it', () => {
    expect(decodeOffer(encodeOffer({ nodeId, description: '\uFEFFmarked' })).description).toBe('\uFEFFmarked')
  })

  test('any text is either an offer or an Error', () => {
    const words = fc.array(fc.constantFrom(...'qpzry9x8gf2tvdw0s3jn54khce6mua7l'), { maxLength: 300, size: 'max' })
    const streams = fc.uint8Array({ maxLength: 300, size: 'max' }).map((bytes) => {
      const encoded = bech32.encode('lno', bech32.toWords(bytes), false)
      return encoded.slice(0, -6)
    })
    const any = fc.oneof(
      fc.string({ unit: 'binary' }),
      words.map((rest) => `lno1${rest.join('')}`),
      streams,
    )
    const property = fc.property(any, (text) => {
      try {
        expect(decodeOffer(text).offerId).toMatch(/^[0-9a-f]{64}$/)
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
        expect((error as Error).name).not.toBe('AssertionError')
      }
    })
    fc.assert(property, { numRuns: 1000 })
  })
})

describe('addresses and links outside the sandbox', () => {
  test.each(['alice@example.com', '₿alice@example.com', ' Alice@example.com '])(
    'paylnaddress cannot resolve "%s"',
    async (address) => {
      const before = await rich.state()
      expectText(await rich.post('/paylnaddress', { address, amountSat: 1 }), 500, /^cannot resolve address: ./)
      expect((await rich.state()).balanceMsat).toBe(before.balanceMsat)
    },
  )

  test.each([{}, { address: '' }, { address: 'alice' }, { address: 'a@b@c' }])(
    'paylnaddress with %j asks for username@domain, even if the address is missing',
    async (form) => {
      const answer = await rich.post('/paylnaddress', { amountSat: 1, ...(form as Record<string, string>) })
      expectText(answer, 400, malformed('address', 'username@domain'))
    },
  )

  test('paylnaddress needs an amount: amountSat or sendAll, not both; sendAll without a channel does not count', async () => {
    const address = 'alice@example.com'
    expectText(await rich.post('/paylnaddress', { address }), 400, missing('amountSat'))
    expectText(await poor.post('/paylnaddress', { address, sendAll: '' }), 400, missing('amountSat'))
    expectText(await rich.post('/paylnaddress', { address, sendAll: '' }), 500, /^cannot resolve address: /)
    const both = await rich.post('/paylnaddress', { address, sendAll: '', amountSat: 1 })
    expectText(both, 400, 'Cannot use both amountSat and sendAll request parameters')
  })

  const lnurl = (url: string): string => bech32.encode('lnurl', bech32.toWords(Buffer.from(url)), false)
  const LOGIN = `https://example.com/login?tag=login&k1=${'ab'.repeat(32)}`
  const WITHDRAW = 'https://example.com/w?tag=withdrawRequest'
  const PAY = 'https://example.com/p?tag=payRequest'
  const UNTAGGED = 'https://example.com/anything'
  /** The example from LUD-01, without a tag. */
  const SPECIFICATION =
    'LNURL1DP68GURN8GHJ7UM9WFMXJCM99E3K7MF0V9CXJ0M385EKVCENXC6R2C35XVUKXEFCV5MKVV34X5EKZD3EV56NYD3HXQURZEPEXEJXXEPNXSCRVWFNV9NXZCN9XQ6XYEFHVGCXXCMYXYMNSERXFQ5FNS'

  test.each([
    { path: '/lnurlpay', url: LOGIN, text: 'this is an authentication lnurl' },
    { path: '/lnurlpay', url: WITHDRAW, text: 'this is a withdraw lnurl' },
    { path: '/lnurlwithdraw', url: LOGIN, text: 'this is an authentication lnurl' },
    { path: '/lnurlwithdraw', url: PAY, text: 'this is a payment lnurl' },
    { path: '/lnurlauth', url: PAY, text: 'this is a payment or withdraw lnurl' },
    { path: '/lnurlauth', url: WITHDRAW, text: 'this is a payment or withdraw lnurl' },
    { path: '/lnurlauth', url: UNTAGGED, text: 'this is a payment or withdraw lnurl' },
  ])('$path of $url: $text', async ({ path, url, text }) => {
    for (const given of [url, lnurl(url), lnurl(url).toUpperCase(), `lightning:${lnurl(url)}`])
      expectText(await rich.post(path, { lnurl: given }), 400, text)
  })

  test.each([
    { path: '/lnurlpay', given: PAY, host: 'example.com' },
    { path: '/lnurlpay', given: UNTAGGED, host: 'example.com' },
    { path: '/lnurlpay', given: SPECIFICATION, host: 'service.com' },
    { path: '/lnurlwithdraw', given: WITHDRAW, host: 'example.com' },
    { path: '/lnurlwithdraw', given: SPECIFICATION, host: 'service.com' },
  ])('$path of $given is 400 with a message about the other side', async ({ path, given, host }) => {
    expectText(await rich.post(path, { lnurl: given }), 400, new RegExp(host.replace('.', '\\.')))
  })

  test('lnurlauth with a login link fails: it could not authenticate', async () => {
    expectText(await rich.post('/lnurlauth', { lnurl: lnurl(LOGIN) }), 400, /^could not authenticate: ./)
  })

  test.each(['/lnurlpay', '/lnurlwithdraw', '/lnurlauth'])('%s: invalid lnurls', async (path) => {
    expectText(await rich.post(path), 400, missing('lnurl'))
    for (const given of ['', 'nonsense', 'ftp://example.com', `${lnurl(PAY)}q`, 'lnurl1qqqq']) {
      const answer = await rich.post(path, { lnurl: given })
      expectText(answer, 500, 'cannot be parsed as a bech32 or as a human readable lnurl')
    }
  })

  test('lnurlpay takes amountSat or sendAll, not both', async () => {
    const answer = await rich.post('/lnurlpay', { lnurl: lnurl(PAY), amountSat: 1, sendAll: '' })
    expectText(answer, 400, 'Cannot use both amountSat and sendAll request parameters')
  })
})

describe('the chain', () => {
  const program = bech32.toWords(Buffer.alloc(32, 7))
  const ADDRESSES = [
    'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    bech32.encode('bcrt', [0, ...program]),
    bech32m.encode('bcrt', [1, ...program]),
    'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn',
    '2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc',
  ]
  const [ADDRESS = ''] = ADDRESSES
  const FOREIGN = [
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx',
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
    'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt08q',
    bech32.encode('bcrt', [1, ...program]),
    bech32m.encode('bcrt', [0, ...program]),
    'nonsense',
    '',
  ]
  const channelId = async (): Promise<string> => (await rich.get('/getinfo')).json().channels[0].channelId

  test.each([
    { form: {}, text: missing('amountSat') },
    { form: { amountSat: 'abc' }, text: malformed('amountSat', 'integer') },
    { form: { amountSat: '1' }, text: missing('address') },
    { form: { amountSat: '1', address: ADDRESS }, text: missing('feerateSatByte') },
    { form: { amountSat: '1', address: ADDRESS, feerateSatByte: 'x' }, text: malformed('feerateSatByte', 'integer') },
    { form: { amountSat: '1', address: 'nonsense', feerateSatByte: '1' }, text: 'Invalid address' },
  ])('sendtoaddress answers even $form with a 200: $text', async ({ form, text }) => {
    for (const node of [rich, poor]) expectText(await node.post('/sendtoaddress', form as Record<string, string>), 200, text)
  })

  test.each(ADDRESSES)('sendtoaddress accepts the address %s and fails with a 200', async (address) => {
    const form = { amountSat: 1000, address, feerateSatByte: 1 }
    expectText(await poor.post('/sendtoaddress', form), 200, 'no channel available')
    const before = await rich.balance()
    const answer = await rich.post('/sendtoaddress', form)
    expectText(answer, 200, /./)
    expect(answer.text).not.toMatch(/^[0-9a-f]{64}$|^Invalid address$|^no channel available$/)
    expect(await rich.balance()).toEqual(before)
  })

  test.each(FOREIGN)('%j is not an address of this chain', async (address) => {
    expectText(await rich.post('/sendtoaddress', { amountSat: 1, address, feerateSatByte: 1 }), 200, 'Invalid address')
    const closing = await rich.post('/closechannel', { channelId: await channelId(), address, feerateSatByte: 1 })
    expectText(closing, 400, 'Invalid address')
  })

  test('bumpfee finds no channel, or nothing to bump; a bad parameter is 400', async () => {
    expectText(await poor.post('/bumpfee', { feerateSatByte: 5 }), 200, 'no channel available')
    const nothing = 'either the tx is already confirmed or has a higher feerate'
    expectText(await rich.post('/bumpfee', { feerateSatByte: 5 }), 200, nothing)
    for (const node of [poor, rich]) {
      expectText(await node.post('/bumpfee'), 400, missing('feerateSatByte'))
      expectText(await node.post('/bumpfee', { feerateSatByte: '1.5' }), 400, malformed('feerateSatByte', 'integer'))
    }
  })

  test('closechannel finds no such channel, or fails, and the channel stays; a bad parameter is 400', async () => {
    const form = { channelId: 'ab'.repeat(32), address: ADDRESS, feerateSatByte: 1 }
    for (const node of [poor, rich]) expectText(await node.post('/closechannel', form), 200, 'no channel available')
    const mine = await rich.post('/closechannel', { ...form, channelId: await channelId() })
    expectText(mine, 200, /./)
    expect(mine.text).not.toMatch(/^[0-9a-f]{64}$|^no channel available$/)
    expect((await rich.get('/getinfo')).json().channels).toMatchObject([{ state: 'Normal' }])
    expectText(await rich.post('/closechannel', { ...form, channelId: 'ab' }), 400, malformed('channelId', 'hex32'))
    expectText(await rich.post('/closechannel', { ...form, feerateSatByte: 'x' }), 400, malformed('feerateSatByte', 'integer'))
  })

  test('getlnaddress needs a channel, and says so with a 200', async () => {
    expectText(await poor.get('/getlnaddress'), 200, 'must have one channel')
    const address = await rich.get('/getlnaddress')
    expectText(address, 200, /^₿[^@\s]+@[^@\s]+$/)
    expect((await rich.get('/getlnaddress')).text).toBe(address.text)
  })

  test('listchannels is empty without a channel; with one, it has one object with a type', async () => {
    expect((await poor.get('/listchannels')).json()).toEqual([])
    const channels = (await rich.get('/listchannels')).json()
    expect(channels).toHaveLength(1)
    expect(channels[0]).toMatchObject({ type: expect.stringMatching(/Normal$/), channelId: await channelId() })
  })

  test('listchannels names the class of an offline channel', async () => {
    const lonely = await new TestNode().start()
    await lonely.fund(1000)
    await lonely.control('peer', { peer: 'down' })
    const [channel] = (await lonely.get('/listchannels')).json()
    expect(channel.type).toMatch(/Offline$/)
  })

  test('estimateliquidityfees: two integers, higher without a channel, growing with the amount', async () => {
    const estimate = async (node: TestNode, amountSat: number): Promise<any> =>
      (await node.get(`/estimateliquidityfees?amountSat=${amountSat}`)).json()
    const [small, large] = [await estimate(poor, 100_000), await estimate(poor, 2_000_000)]
    for (const fees of [small, large]) {
      expect(Object.keys(fees)).toEqual(['miningFeeSat', 'serviceFeeSat'])
      expect(Object.values(fees).every((fee) => Number.isInteger(fee) && Number(fee) > 0)).toBe(true)
    }
    expect(large.serviceFeeSat).toBe(20_000)
    expect(small.serviceFeeSat).toBe(1000)
    expect((await estimate(rich, 2_000_000)).miningFeeSat).toBeLessThan(large.miningFeeSat)
    expectText(await poor.get('/estimateliquidityfees?amountSat=-1'), 400, /^no available funding rates for amount=-1/)
  })

  test('estimateliquidityfees waits while feerates are unknown, without delaying other calls', async () => {
    await poor.control('explorer', { explorer: 'down' })
    let answered = false
    const waiting = poor.get('/estimateliquidityfees?amountSat=1000').finally(() => {
      answered = true
    })
    for (let asked = 0; asked < 5; asked++) expect((await poor.get('/getinfo')).status).toBe(200)
    expect(answered).toBe(false)
    await poor.control('explorer', { explorer: 'up' })
    expect((await waiting).status).toBe(200)
  })
})

describe('export', () => {
  const HEADER = 'date,id,type,amount_msat,fee_credit_msat,mining_fee_sat,service_fee_msat,payment_hash,tx_id'
  let shop: TestNode
  const hashes: string[] = []

  beforeAll(async () => {
    shop = await new TestNode({ hub }).start()
    const pay = async (form: Record<string, number>): Promise<void> => {
      const invoice = await shop.invoice(form)
      expect((await hub.post('/pay', { invoice: invoice.serialized })).status).toBe(200)
      hashes.push(invoice.paymentHash)
      await shop.control('clock', { advanceSeconds: 10 })
    }
    await shop.control('fee-credit', { feeCredit: 'on' })
    await pay({ amountSat: 5000 })
    await pay({ amountSat: 300_000 })
    await pay({ amountSat: 1234 })
    await shop.invoice({ amountSat: 99 })
    const spent = await rich.invoice({ amountSat: 777 })
    expect(await shop.pay(spent.serialized)).toHaveProperty('paymentPreimage')
    hashes.push(spent.paymentHash)
    const tooDear = await rich.invoice({ amountSat: 50_000_000 })
    expect(await shop.pay(tooDear.serialized)).toHaveProperty('reason')
  })

  async function exported(query = ''): Promise<{ path: string; header: string; rows: Record<string, string>[] }> {
    await shop.control('clock', { advanceSeconds: 1 })
    const answer = await shop.post(`/export${query}`, {}, LIMITED)
    expectText(answer, 200, /^payment history has been exported to .+\/exports\/export-\d+\.csv$/)
    const path = answer.text.slice('payment history has been exported to '.length)
    const [header = '', ...lines] = readText(path).trimEnd().split('\n')
    const names = header.split(',')
    const rows = lines.map((line) => Object.fromEntries(line.split(',').map((cell, at) => [names[at] ?? '', cell])))
    return { path, header, rows }
  }
  const sum = (rows: Record<string, string>[], column: string): number =>
    rows.reduce((total, row) => total + Number(row[column]), 0)

  test('writes a file named after the current second to the data directory, readable only by the owner', async () => {
    const before = await shop.state()
    const { path, header } = await exported()
    expect(path.startsWith(join(shop.dataDir, 'exports', 'export-'))).toBe(true)
    expect(header).toBe(HEADER)
    expect(statSync(path).mode & 0o077).toBe(0)
    const seconds = Number(/export-(\d+)\.csv$/.exec(path)?.[1])
    expect(seconds).toBeGreaterThanOrEqual(Math.floor(before.nowMs / 1000))
    expect(seconds).toBeLessThanOrEqual((await shop.state()).nowMs / 1000)
    expect(readdirSync(join(shop.dataDir, 'exports'))).toContain(`export-${seconds}.csv`)
  })

  test('has a row for each payment that succeeded, oldest first, and the columns add up to the balance and the credit', async () => {
    const { rows } = await exported()
    expect(rows.map((row) => row.payment_hash)).toEqual(hashes)
    expect(rows.map((row) => row.type)).toEqual([
      'lightning_received',
      'lightning_received',
      'lightning_received',
      'lightning_sent',
    ])
    for (const row of rows) {
      expect(new Date(row.date ?? '').toISOString()).toBe(row.date)
      expect(row.id).toMatch(/^[0-9a-f-]{36}$/)
    }
    const { balanceMsat, feeCreditMsat } = await shop.state()
    expect([sum(rows, 'amount_msat'), sum(rows, 'fee_credit_msat')]).toEqual([balanceMsat, feeCreditMsat])
    expect(rows[0]).toMatchObject({ amount_msat: '0', fee_credit_msat: '5000000' })
    expect(rows[3]).toMatchObject({ amount_msat: '-784108', service_fee_msat: '7108' })
  })

  test('from and to, in ms and inclusive, select the rows', async () => {
    const received = (await shop.get('/payments/incoming')).json().reverse()
    expect(received).toHaveLength(3)
    const { rows } = await exported(`?from=${received[1].completedAt}&to=${received[2].completedAt}`)
    expect(rows.map((row) => row.payment_hash)).toEqual(hashes.slice(1, 3))
    expect((await exported(`?from=${received[1].completedAt + 1}`)).rows).toHaveLength(2)
    expect((await exported('?to=1')).rows).toEqual([])
  })

  test('of a node without payments has only the header', async () => {
    const fresh = await new TestNode().start()
    const path = (await fresh.post('/export')).text.split(' exported to ')[1] ?? ''
    expect(readText(path)).toBe(`${HEADER}\n`)
  })
})
