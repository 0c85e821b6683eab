import { bech32 } from '@scure/base'
import { describe, expect, test } from 'vitest'
import { create, created, invoicesOf, MAX_AMOUNT_SAT, node, readIndependently, sha256 } from './invoices.ts'

describe('creating an invoice', () => {
  test('S24: the answer is amountSat, paymentHash and serialized, and the hash is the one in the invoice', async () => {
    const beforeSeconds = Math.floor(Date.now() / 1000)
    const made = await created({ amountSat: 21, description: 'a coffee' })
    expect(Object.keys(made)).toEqual(['amountSat', 'paymentHash', 'serialized'])
    expect(made.amountSat).toBe(21)
    const read = readIndependently(made.serialized)
    expect(read).toMatchObject({ paymentHash: made.paymentHash, amountMsat: '21000', description: 'a coffee' })
    expect(read.timestamp).toBeGreaterThanOrEqual(beforeSeconds)
    expect(read.timestamp).toBeLessThanOrEqual(Date.now() / 1000)
  })

  test('S24: two invoices share neither hash nor secret', async () => {
    const [one, other] = [await created({ description: 'same' }), await created({ description: 'same' })]
    expect(one.paymentHash).not.toBe(other.paymentHash)
    expect(readIndependently(one.serialized).paymentSecret).not.toBe(readIndependently(other.serialized).paymentSecret)
  })

  test('S25: the signature recovers to the node id; the prefix is that of regtest', async () => {
    const { serialized } = await created({ amountSat: 1, description: 'x' })
    expect(readIndependently(serialized).nodeId).toBe((await node.get('/getinfo')).json().nodeId)
    expect(serialized).toMatch(/^lnbcrt10n1[qpzry9x8gf2tvdw0s3jn54khce6mua7l]+$/)
    expect((await created({ description: 'x' })).serialized).toMatch(/^lnbcrt1[qpzry9x8gf2tvdw0s3jn54khce6mua7l]+$/)
  })

  test.each([
    { amountSat: 1, hrp: 'lnbcrt10n' },
    { amountSat: 99, hrp: 'lnbcrt990n' },
    { amountSat: 100, hrp: 'lnbcrt1u' },
    { amountSat: 12_345, hrp: 'lnbcrt123450n' },
    { amountSat: 100_000, hrp: 'lnbcrt1m' },
    { amountSat: 250_000, hrp: 'lnbcrt2500u' },
    { amountSat: 100_000_000, hrp: 'lnbcrt1' },
    { amountSat: 2_100_000_000, hrp: 'lnbcrt21' },
    { amountSat: MAX_AMOUNT_SAT, hrp: `lnbcrt${MAX_AMOUNT_SAT}0n` },
  ])('S24: $amountSat sat are written as $hrp', async ({ amountSat, hrp }) => {
    const { serialized } = await created({ amountSat, description: 'x' })
    expect(serialized.slice(0, serialized.lastIndexOf('1'))).toBe(hrp)
    expect(readIndependently(serialized).amountMsat).toBe(`${amountSat}000`)
  })

  const sentence = 'Must provide either a description or descriptionHash'
  test.each([
    { what: 'both', form: { description: 'x', descriptionHash: '00'.repeat(32) } },
    { what: 'both, the description empty', form: { description: '', descriptionHash: '00'.repeat(32) } },
    { what: 'neither', form: {} },
    { what: 'neither, but an amount', form: { amountSat: 5 } },
  ])('S26: $what of description and descriptionHash is 400', async ({ form }) => {
    const before = (await invoicesOf()).length
    const answer = await create(form as Record<string, string | number>)
    expect([answer.status, answer.text]).toEqual([400, sentence])
    expect(await invoicesOf()).toHaveLength(before)
  })

  test.each([
    ['Latin', 'x'],
    ['Han', '漢'],
    ['two units each', '😀'],
  ])('S26: 128 UTF-16 units pass, 129 do not (%s)', async (_name, character) => {
    const fits = character.repeat(128 / character.length)
    const { serialized, paymentHash } = await created({ description: fits })
    expect(readIndependently(serialized).description).toBe(fits)
    expect((await node.incoming(paymentHash)).description).toBe(fits)
    const answer = await create({ description: `${fits}x` })
    expect([answer.status, answer.text]).toEqual([400, 'Request parameter description is too long (max 128 characters)'])
  })

  test('S26: an empty description is allowed', async () => {
    const { serialized, paymentHash } = await created({ description: '' })
    expect(readIndependently(serialized)).toMatchObject({ description: '', tags: 'pcs9dmxr' })
    expect((await node.incoming(paymentHash)).description).toBe('')
  })

  test('S27: descriptionHash is in tag h, and there is no tag d', async () => {
    const descriptionHash = sha256(Buffer.from('a very long description'))
    for (const given of [descriptionHash, descriptionHash.toUpperCase()]) {
      const { serialized, paymentHash } = await created({ descriptionHash: given })
      expect(readIndependently(serialized)).toMatchObject({ descriptionHash, description: undefined, tags: 'pcs9hmxr' })
      expect(await node.incoming(paymentHash)).not.toHaveProperty('description')
    }
  })

  test.each(['', '00', '0'.repeat(63), '0'.repeat(65), 'g'.repeat(64), `0x${'0'.repeat(62)}`])(
    'S27: descriptionHash=%j is not 32 bytes in hex',
    async (descriptionHash) => {
      const answer = await create({ descriptionHash })
      const wrong = "Request parameter descriptionHash couldn't be parsed/converted to hex32"
      expect([answer.status, answer.text]).toEqual([400, wrong])
    },
  )

  test('S28: without amountSat neither the answer nor the human-readable part has an amount', async () => {
    const made = await created({ description: 'any amount' })
    expect(Object.keys(made)).toEqual(['paymentHash', 'serialized'])
    expect(made.serialized).toMatch(/^lnbcrt1p/)
    expect(readIndependently(made.serialized).amountMsat).toBeNull()
    expect(await node.incoming(made.paymentHash)).not.toHaveProperty('requestedSat')
  })

  test('S28: amountSat=0 acts as none, with a literal 0 in the human-readable part', async () => {
    const made = await created({ description: 'zero', amountSat: 0 })
    expect(Object.keys(made)).toEqual(['paymentHash', 'serialized'])
    expect(made.serialized).toMatch(/^lnbcrt01p/)
    expect(await node.incoming(made.paymentHash)).not.toHaveProperty('requestedSat')
    expect((await node.post('/decodeinvoice', { invoice: made.serialized })).json()).not.toHaveProperty('amount')
  })

  test.each(['-1', '-21000000', '-9223372036854775808', '9223372036854775807'])(
    'P5: the amount %s acts as 0',
    async (amountSat) => {
      const made = await created({ description: 'x', amountSat })
      expect(Object.keys(made)).toEqual(['paymentHash', 'serialized'])
      expect(made.serialized).toMatch(/^lnbcrt01p/)
      expect(await node.incoming(made.paymentHash)).not.toHaveProperty('requestedSat')
    },
  )

  test('P7: the amount 9223372036854776 overflows to 192 msat', async () => {
    const made = await created({ description: 'x', amountSat: '9223372036854776' })
    expect(made.amountSat).toBe(0)
    expect(made.serialized).toMatch(/^lnbcrt1920p1/)
    expect(await node.incoming(made.paymentHash)).toMatchObject({ requestedSat: 0 })
  })

  test.each([
    ['P6', { amountSat: '2100000000000000' }, 'invalid sub-millisatoshi precision'],
    ['P6', { amountSat: '2100000000000001' }, 'invalid sub-millisatoshi precision'],
    ['P9', { expirySeconds: '-1' }, 'String index out of range: -1'],
    ['P9', { expirySeconds: '-100' }, 'String index out of range: -3'],
    ['P9', { expirySeconds: '-9223372036854775808' }, 'String index out of range: -8'],
    // In these cases, phoenixd would create an invoice with overflowed numbers.
    ['P7', { amountSat: '9223372036854775' }, 'amount is not valid'],
    ['P10', { expirySeconds: '9223372036854775807' }, 'expiry is not valid'],
  ])('%s: %j is 500 and makes no invoice', async (_rule, form, text) => {
    const before = (await invoicesOf()).length
    const answer = await create({ description: 'x', ...form })
    expect([answer.status, answer.text]).toEqual([500, text])
    expect(await invoicesOf()).toHaveLength(before)
  })

  test('all parameters are parsed before the amount is checked', async () => {
    const amountSat = '2100000000000000'
    expect((await create({ amountSat })).text).toBe(sentence)
    expect((await create({ amountSat, description: 'x'.repeat(129) })).status).toBe(400)
    expect((await create({ amountSat, description: 'x', expirySeconds: 'soon' })).status).toBe(400)
  })

  test('S29: without expirySeconds, the invoice has an explicit expiry of 86400 s', async () => {
    const { serialized, paymentHash } = await created({ description: 'x' })
    expect(readIndependently(serialized).expirySeconds).toBe(86_400)
    const found = await node.incoming(paymentHash)
    expect(found.expiresAt - found.createdAt).toBe(86_400_000)
  })

  test.each([1, 31, 32, 59, 3600, 1_048_575, 31_536_000])('S29: an expiry of %s s is encoded', async (expirySeconds) => {
    const { serialized, paymentHash } = await created({ description: 'x', expirySeconds })
    expect(readIndependently(serialized).expirySeconds).toBe(expirySeconds)
    const found = await node.incoming(paymentHash)
    expect(found.expiresAt - found.createdAt).toBe(expirySeconds * 1000)
  })

  test('S30: the preimage hashes to the payment hash', async () => {
    const { paymentHash } = await created({ description: 'x' })
    const { preimage } = await node.incoming(paymentHash)
    expect(preimage).toMatch(/^[0-9a-f]{64}$/)
    expect(sha256(Buffer.from(preimage, 'hex'))).toBe(paymentHash)
  })

  test('an invoice has phoenixd’s tags, features and one routing hint to the node', async () => {
    const read = readIndependently((await created({ amountSat: 5, description: 'x' })).serialized)
    expect(read.tags).toBe('pcs9dmxr')
    expect(read.features).toEqual([8, 14, 17, 49, 149])
    expect([read.minFinalCltvExpiry, read.metadata]).toEqual([144, '2a'])
    expect(read.hops).toHaveLength(1)
    expect(read.hops[0]).toHaveLength(1)
    expect(read.hops[0]?.[0]).toMatchObject({
      short_channel_id: `ff${node.nodeId.slice(-14)}`,
      fee_base_msat: 1000,
      fee_proportional_millionths: 100,
      cltv_expiry_delta: 144,
    })
    expect(read.hops[0]?.[0]?.pubkey).toMatch(/^0[23][0-9a-f]{64}$/)
  })

  test.each(['nonsense', '', 'http://', 'http://[::1', 'http://a b', '/relative', 'http://user:pw@h/', 'http://x:65535/'])(
    'P4: the webhookUrl "%s" is accepted',
    async (webhookUrl) => {
      const externalId = `hook ${webhookUrl}`
      const { paymentHash } = await created({ description: 'x', externalId, webhookUrl })
      expect(await node.incoming(paymentHash)).toMatchObject({ externalId })
    },
  )

  test('C49: texts stored with an invoice are limited: the externalId to 256 characters, the webhookUrl to 2048', async () => {
    const url = 'http://x/'.padEnd(2_048, 'u')
    await created({ description: 'x', externalId: 'e'.repeat(256), webhookUrl: url })
    const before = (await invoicesOf()).length
    for (const [name, value] of [
      ['externalId', 'e'.repeat(257)],
      ['webhookUrl', `${url}u`],
    ] as const) {
      const answer = await create({ description: 'x', [name]: value })
      const text = `Request parameter ${name} is too long (max ${value.length - 1} characters)`
      expect([answer.status, answer.text]).toEqual([400, text])
    }
    expect(await invoicesOf()).toHaveLength(before)
  })

  test('security 9: an invoice too long for a QR code is refused, so an attempt to pay it stores nothing', async () => {
    const { prefix, words } = bech32.decode((await created({ description: 'x' })).serialized as `${string}1${string}`, false)
    const unknownField = [2, 31, 31, ...new Array<number>(1_023).fill(0)]
    // Any signature recovers to some key, so the invoice stays valid with the added field.
    const longer = (fields: number): string =>
      bech32.encode(
        prefix,
        [...words.slice(0, -104), ...Array.from({ length: fields }, () => unknownField).flat(), ...words.slice(-104)],
        false,
      )
    expect([longer(6).length < 7_089, longer(7).length > 7_089]).toEqual([true, true])
    expect((await node.post('/decodeinvoice', { invoice: longer(6) })).status).toBe(200)
    for (const path of ['/decodeinvoice', '/payinvoice']) {
      const answer = await node.post(path, { invoice: longer(7), amountSat: 1 })
      const text = "Request parameter invoice couldn't be parsed/converted to bolt11invoice"
      expect([answer.status, answer.text]).toEqual([400, text])
    }
  })

  test.each([':::', '127.0.0.1:9/x', 'http://x:99999/', 'http://x:65536', 'http://[::1]:no/'])(
    'P4: the webhookUrl "%s" is 400, and yet the invoice exists, without its externalId',
    async (webhookUrl) => {
      const before = (await invoicesOf()).length
      const answer = await create({ description: 'orphan', externalId: 'orphan', webhookUrl })
      const wrong = "Request parameter webhookUrl couldn't be parsed/converted to url"
      expect([answer.status, answer.text]).toEqual([400, wrong])
      const [newest, ...others] = await invoicesOf()
      expect(others).toHaveLength(before)
      expect(newest).toMatchObject({ description: 'orphan', isPaid: false })
      expect(newest).not.toHaveProperty('externalId')
    },
  )
})
