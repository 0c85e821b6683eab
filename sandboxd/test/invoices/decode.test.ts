import { createECDH, createHash } from 'node:crypto'
import { bech32 } from '@scure/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeInvoice, encodeInvoice, type NewInvoice } from '../../src/lightning/bolt11.ts'
import { basic, FULL, readText, send, TestNode } from '../harness.ts'
import { bytes32, CHARSET, created, descriptions, MAX_AMOUNT_SAT, node, readIndependently } from './invoices.ts'

describe('decoding an invoice', () => {
  const decoded = async (invoice: string): Promise<any> => {
    const answer = await node.post('/decodeinvoice', { invoice })
    expect(answer.status).toBe(200)
    return answer.json()
  }

  test('S31: decodeinvoice returns the values given to createinvoice; the amount is in msat', async () => {
    const { serialized, paymentHash } = await created({ amountSat: 12_345, description: 'Grüße 😀', expirySeconds: 77 })
    const read = readIndependently(serialized)
    const found = await decoded(serialized)
    expect(found).toEqual({
      chain: 'regtest',
      amount: 12_345_000,
      paymentHash,
      description: 'Grüße 😀',
      minFinalCltvExpiryDelta: 144,
      paymentSecret: read.paymentSecret,
      paymentMetadata: '2a',
      expirySeconds: 77,
      extraHops: [
        [
          {
            nodeId: read.hops[0]?.[0]?.pubkey,
            shortChannelId: shortChannelId(read.hops[0]?.[0]?.short_channel_id ?? ''),
            feeBase: 1000,
            feeProportionalMillionths: 100,
            cltvExpiryDelta: 144,
          },
        ],
      ],
      features: {
        activated: {
          var_onion_optin: 'Mandatory',
          payment_secret: 'Mandatory',
          basic_mpp: 'Optional',
          option_payment_metadata: 'Optional',
          trampoline_payment_experimental: 'Optional',
        },
        unknown: [],
      },
      timestampSeconds: read.timestamp,
    })
    expect(Object.keys(found)).toEqual([
      'chain',
      'amount',
      'paymentHash',
      'description',
      'minFinalCltvExpiryDelta',
      'paymentSecret',
      'paymentMetadata',
      'expirySeconds',
      'extraHops',
      'features',
      'timestampSeconds',
    ])
  })

  function shortChannelId(hex: string): string {
    const at = (from: number, to: number): number => Number.parseInt(hex.slice(from, to), 16)
    return `${at(0, 6)}x${at(6, 12)}x${at(12, 16)}`
  }

  test('S31: an amountless invoice with a description hash has neither amount nor description', async () => {
    const descriptionHash = 'ab'.repeat(32)
    const found = await decoded((await created({ descriptionHash })).serialized)
    expect(found).toMatchObject({ descriptionHash, expirySeconds: 86_400 })
    for (const field of ['amount', 'description']) expect(found).not.toHaveProperty(field)
  })

  test('S31: capital letters, as in a QR code, are the same invoice', async () => {
    const { serialized } = await created({ amountSat: 9, description: 'QR' })
    expect(await decoded(serialized.toUpperCase())).toEqual(await decoded(serialized))
  })

  test('S31: a description that begins with a byte order mark keeps it', async () => {
    const description = '\uFEFFmarked'
    const { serialized } = await created({ description })
    expect(readIndependently(serialized).description).toBe(description)
    expect((await decoded(serialized)).description).toBe(description)
  })

  const SPECIFICATION =
    'pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypq'
  test.each([
    {
      description: 'Please consider supporting this project',
      invoice: `lnbc1${SPECIFICATION}dpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyafkq3yap9us6v52vjjsrvywa6rt52cm9r9zqt8r2t7mlcwspyetp5h2tztugp9lfyql`,
    },
    {
      description: '1 cup coffee',
      amount: 250_000_000,
      expirySeconds: 60,
      invoice: `lnbc2500u1${SPECIFICATION}dq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh`,
    },
    {
      description: 'ナンセンス 1杯',
      amount: 250_000_000,
      expirySeconds: 60,
      invoice: `lnbc2500u1${SPECIFICATION}dpquwpc4curk03c9wlrswe78q4eyqc7d8d0xqzpu9qrsgqhtjpauu9ur7fw2thcl4y9vfvh4m9wlfyz2gem29g5ghe2aak2pm3ps8fdhtceqsaagty2vph7utlgj48u0ged6a337aewvraedendscp573dxr`,
    },
  ])('S31: the example of BOLT 11 "$description"', async ({ invoice, ...expected }) => {
    const found = await decoded(invoice)
    expect(found).toEqual({
      chain: 'mainnet',
      ...expected,
      paymentHash: '0001020304050607080900010203040506070809000102030405060708090102',
      paymentSecret: '11'.repeat(32),
      extraHops: [],
      features: { activated: { var_onion_optin: 'Mandatory', payment_secret: 'Mandatory' }, unknown: [] },
      timestampSeconds: 1_496_314_658,
    })
    expect(decodeInvoice(invoice).nodeId).toBe('03e7156ae33b0a208d0744199163177e909e80176e55d97a2f221ede0f934dd9ad')
  })

  test('S32: a corrupt invoice is 400', async () => {
    const { serialized } = await created({ amountSat: 100, description: 'x' })
    const swapped = serialized.replace(/(.)(.)$/, (_all, a, b) => (a === b ? `q${b}` : `${b}${a}`))
    const flipped = `${serialized.slice(0, 60)}${serialized[60] === 'q' ? 'p' : 'q'}${serialized.slice(61)}`
    const corrupt = [
      swapped,
      flipped,
      serialized.slice(0, -1),
      `${serialized}q`,
      serialized.slice(1),
      serialized.replace('lnbcrt', 'lnbc'),
      serialized.replace('lnbcrt1u', 'lnbcrt2u'),
      `${serialized.slice(0, 20)}${serialized.slice(20).toUpperCase()}`,
      (await node.get('/getoffer')).text,
      'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
      'lnbcrt1',
      'lnbcrt',
      '1',
      '😀',
    ]
    for (const invoice of corrupt) {
      for (const path of ['/decodeinvoice', '/payinvoice']) {
        const answer = await node.post(path, { invoice })
        const wrong = "Request parameter invoice couldn't be parsed/converted to bolt11invoice"
        expect([invoice, answer.status, answer.text]).toEqual([invoice, 400, wrong])
      }
    }
  })

  test('S32: a corrupt invoice with a correct checksum is 400', async () => {
    const { prefix, words } = bech32.decode((await created({ description: 'x' })).serialized as `${string}1${string}`, false)
    const encoded = (changed: number[], hrp: string = prefix): string => bech32.encode(hrp, changed, false)
    const corrupt = {
      'no signature': encoded(words.slice(0, -104)),
      'nothing but a signature': encoded(words.slice(-104)),
      'no payment hash': encoded([...words.slice(0, 7), ...words.slice(7 + 55)]),
      'a field that ends too late': encoded([...words.slice(0, 8), 31, 31, ...words.slice(10)]),
      'a last field that is cut off': encoded([...words.slice(0, -104), 2, 0, 5, 1, ...words.slice(-104)]),
      'a last field without a length': encoded([...words.slice(0, -104), 2, ...words.slice(-104)]),
      'an unknown chain': encoded(words, 'lnxy'),
      'an unknown multiplier': encoded(words, 'lnbcrt5x'),
      'less than a millisatoshi': encoded(words, 'lnbcrt5p'),
      'an impossible recovery id': encoded([...words.slice(0, -2), 31, 31]),
      'an impossible signature': encoded([...words.slice(0, -104), ...new Array<number>(104).fill(0)]),
    }
    for (const [what, invoice] of Object.entries(corrupt))
      expect([what, (await node.post('/decodeinvoice', { invoice })).status]).toEqual([what, 400])
  })
})

describe('for all invoices', () => {
  test('S24 S25 S26 S28 S29 S31: what is asked for over HTTP is in the invoice, in the lookup and in decodeinvoice', async () => {
    const property = fc.asyncProperty(
      fc.option(fc.integer({ min: 1, max: MAX_AMOUNT_SAT }), { nil: undefined }),
      descriptions,
      fc.option(fc.integer({ min: 1, max: 31_536_000 }), { nil: undefined }),
      async (amountSat, description, expirySeconds) => {
        const made = await created({
          description,
          ...(amountSat === undefined ? {} : { amountSat }),
          ...(expirySeconds === undefined ? {} : { expirySeconds }),
        })
        const wanted = { paymentHash: made.paymentHash, description, expirySeconds: expirySeconds ?? 86_400 }
        const amountMsat = amountSat === undefined ? undefined : amountSat * 1000
        expect(made.amountSat).toBe(amountSat)
        const read = readIndependently(made.serialized)
        expect(read).toMatchObject({ ...wanted, nodeId: node.nodeId, tags: 'pcs9dmxr', features: [8, 14, 17, 49, 149] })
        expect(read.amountMsat).toBe(amountMsat === undefined ? null : String(amountMsat))
        const decoded = (await node.post('/decodeinvoice', { invoice: made.serialized })).json()
        expect(decoded).toMatchObject({ ...wanted, chain: 'regtest', timestampSeconds: read.timestamp })
        expect(decoded.amount).toBe(amountMsat)
        const found = await node.incoming(made.paymentHash)
        expect(found).toMatchObject({ description, invoice: made.serialized, isPaid: false })
        expect([found.requestedSat, found.expiresAt - found.createdAt]).toEqual([amountSat, wanted.expirySeconds * 1000])
        expect(Math.floor(found.createdAt / 1000)).toBe(read.timestamp)
      },
    )
    await fc.assert(property, { numRuns: 80 })
  })

  const keys = bytes32.map((bytes) => createHash('sha256').update(bytes).digest())
  const nodeIdOf = (key: Buffer): string => {
    const pair = createECDH('secp256k1')
    pair.setPrivateKey(key)
    return pair.getPublicKey('hex', 'compressed')
  }
  const routingHint = Buffer.concat([
    Buffer.from(`02${'79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'}`, 'hex'),
    Buffer.alloc(18, 7),
  ])
  const newInvoices: fc.Arbitrary<NewInvoice> = fc.record({
    amountMsat: fc.option(fc.integer({ min: 1, max: MAX_AMOUNT_SAT * 1000 }), { nil: undefined }),
    timestampSeconds: fc.integer({ min: 0, max: 2 ** 35 - 1 }),
    paymentHash: bytes32,
    paymentSecret: bytes32,
    description: fc.oneof(
      descriptions.map((text) => ({ text })),
      bytes32.map((hash) => ({ hash })),
    ),
    expirySeconds: fc.integer({ min: 0, max: 1_000_000_000 }),
    routingHint: fc.constant(routingHint),
  })
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

  test('S24 S25 S27 S28 S29: three decoders read back what is encoded', () => {
    const property = fc.property(newInvoices, keys, (invoice, key) => {
      const serialized = encodeInvoice(invoice, key)
      const wanted = {
        nodeId: nodeIdOf(key),
        paymentHash: hex(invoice.paymentHash),
        paymentSecret: hex(invoice.paymentSecret),
        description: 'text' in invoice.description ? invoice.description.text : undefined,
        descriptionHash: 'hash' in invoice.description ? hex(invoice.description.hash) : undefined,
        expirySeconds: invoice.expirySeconds,
        features: [8, 14, 17, 49, 149],
      }
      expect(readIndependently(serialized)).toMatchObject({
        ...wanted,
        amountMsat: invoice.amountMsat === undefined ? null : String(invoice.amountMsat),
        timestamp: invoice.timestampSeconds,
        tags: 'text' in invoice.description ? 'pcs9dmxr' : 'pcs9hmxr',
      })
      const read = decodeInvoice(serialized)
      expect(read).toMatchObject({
        ...wanted,
        chain: 'regtest',
        timestampSeconds: invoice.timestampSeconds,
        paymentMetadata: '2a',
      })
      expect([read.amountMsat, read.minFinalCltvExpiryDelta]).toEqual([invoice.amountMsat, 144])
      expect(read.extraHops).toEqual([[expect.objectContaining({ nodeId: routingHint.subarray(0, 33).toString('hex') })]])
    })
    fc.assert(property, { numRuns: 400 })
  })

  test('S32: replacing any one character of an invoice by any other never yields a different invoice', () => {
    const invoice: NewInvoice = {
      amountMsat: 2_500_000,
      timestampSeconds: 1_700_000_000,
      paymentHash: Buffer.alloc(32, 1),
      paymentSecret: Buffer.alloc(32, 2),
      description: { text: 'a coffee' },
      expirySeconds: 3600,
      routingHint,
    }
    const serialized = encodeInvoice(invoice, Buffer.alloc(32, 3))
    const accepted: string[] = []
    for (let at = 0; at < serialized.length; at++) {
      for (const character of `${CHARSET}1bio0A!~ `) {
        if (character === serialized[at]) continue
        const changed = `${serialized.slice(0, at)}${character}${serialized.slice(at + 1)}`
        if (meaningOf(changed) !== undefined) accepted.push(changed)
      }
    }
    expect(accepted).toEqual([])
    expect(meaningOf(serialized)).toBeDefined()
  })

  /** Undefined if the text is refused. A refusal must be an Error. */
  function meaningOf(text: string): ReturnType<typeof decodeInvoice> | undefined {
    try {
      return decodeInvoice(text)
    } catch (error) {
      expect(error).toBeInstanceOf(Error)
      return undefined
    }
  }

  test('S32: one changed character never yields a different invoice, for any invoice', () => {
    const property = fc.property(
      newInvoices,
      keys,
      fc.nat(),
      fc.constantFrom(...CHARSET, '1', 'b'),
      (invoice, key, place, character) => {
        const serialized = encodeInvoice(invoice, key)
        const at = place % serialized.length
        const changed = `${serialized.slice(0, at)}${character}${serialized.slice(at + 1)}`
        expect(meaningOf(changed)).toEqual(changed === serialized ? decodeInvoice(serialized) : undefined)
      },
    )
    fc.assert(property, { numRuns: 200 })
  })

  test('S25: changing an invoice and repairing its checksum changes the recovered signer', () => {
    const property = fc.property(newInvoices, keys, fc.nat(), fc.integer({ min: 1, max: 31 }), (invoice, key, place, change) => {
      const { prefix, words } = bech32.decode(encodeInvoice(invoice, key) as `${string}1${string}`, false)
      const at = place % words.length
      const forged = words.map((word, index) => (index === at ? word ^ change : word))
      expect(meaningOf(bech32.encode(prefix, forged, false))?.nodeId).not.toBe(nodeIdOf(key))
      const dearer = prefix === 'lnbcrt' ? 'lnbcrt1m' : 'lnbcrt'
      expect(meaningOf(bech32.encode(dearer, words, false))?.nodeId).not.toBe(nodeIdOf(key))
    })
    fc.assert(property, { numRuns: 150 })
  })

  test('S32: any text is either an invoice or an Error', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'binary' }).map((rest) => `lnbcrt1${rest}`),
      fc.array(fc.constantFrom(...CHARSET), { maxLength: 400, size: 'max' }).map((rest) => `lnbcrt1${rest.join('')}`),
      fc
        .tuple(
          fc.oneof(
            fc.constantFrom(
              'lnbcrt',
              'lnbc',
              'lntb',
              'lnbcrt0',
              'lnbcrt1m',
              'lnbcrt99999999999999999999m',
              'lnbc1x',
              'ln',
              'lno',
            ),
            fc.nat().map((amount) => `lnbcrt${amount}p`),
          ),
          fc.array(fc.integer({ min: 0, max: 31 }), { maxLength: 400, size: 'max' }),
        )
        .map(([prefix, words]) => bech32.encode(prefix, words, false)),
    )
    fc.assert(
      fc.property(texts, (text) => {
        meaningOf(text)
      }),
      { numRuns: 2000 },
    )
  })

  /** CPU time, because elapsed time would depend on what else the machine is doing. */
  const cpuMs = ({ daemon }: TestNode): number => Number(readText(`/proc/${daemon.child.pid}/schedstat`).split(' ')[0]) / 1e6

  test('S32: a megabyte of fields with a correct checksum is refused quickly, without delaying others', async () => {
    const target = await new TestNode().start()
    const size = 3 * 333_000
    const shapes = {
      'unknown fields': Array.from({ length: size }, (_, at) => (at % 3 ? 0 : 2)),
      'routing hints': Array.from({ length: size }, (_, at) => (at % 3 ? 0 : 3)),
      'long descriptions': Array.from({ length: size - (size % 1026) }, (_, at) => [13, 31, 31][at % 1026] ?? 12),
    }
    for (const [what, fields] of Object.entries(shapes)) {
      const words = [...new Array<number>(7).fill(0), ...fields, ...new Array<number>(104).fill(1)]
      const body = new URLSearchParams({ invoice: bech32.encode('lnbcrt', words, false) }).toString()
      const headers = { authorization: basic(FULL), 'content-type': 'application/x-www-form-urlencoded' }
      const beforeMs = cpuMs(target)
      const [answer] = await Promise.all([
        send(target.port, 'POST', '/decodeinvoice', { headers, body }),
        send(target.port, 'GET', '/getinfo', { headers: { authorization: basic(FULL) } }),
      ])
      expect([what, answer.status]).toEqual([what, 400])
      expect(cpuMs(target) - beforeMs).toBeLessThan(10_000)
    }
  })
})
