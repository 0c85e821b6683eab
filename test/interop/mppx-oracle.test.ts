import { createHash } from 'node:crypto'
import { fetchWithMpp } from '@getalby/lightning-tools/402/mpp'
import fc from 'fast-check'
import { Challenge, Credential, Receipt } from 'mppx'
import { afterEach, expect, test, vi } from 'vitest'
import { issueMpp, MPP_HEADER, mppReceipt } from '../../protocol/src/mpp.ts'
import { mppRefusal, primitives } from '../../protocol/test/support/codecs.ts'

/** mppx's codecs check ours: the same mistake in our encoder and decoder would pass all of our own tests. */
const cases = fc
  .record({
    // mppx takes the secret as text, so ours is text here.
    secret: fc.stringMatching(/^[!-~]{32,64}$/),
    realm: fc.stringMatching(/^[a-z0-9][a-z0-9.-]{0,40}(:[1-9][0-9]{0,4})?$/),
    amountSat: fc.integer({ min: 1, max: 2_100_000_000_000_000 }),
    description: fc.string({ unit: 'binary', maxLength: 200 }),
    paymentId: fc.stringMatching(/^pay_[a-z0-9]{1,30}$/),
    invoice: fc.stringMatching(/^lnbcrt[a-z0-9]{1,300}$/),
    network: fc.constantFrom('mainnet' as const, 'regtest' as const, 'signet' as const),
    preimage: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex')),
    expires: fc.integer({ min: 0, max: 4_000_000_000 }),
  })
  .map(({ secret, realm, preimage, expires, ...rest }) => {
    const paymentHash = createHash('sha256').update(Buffer.from(preimage, 'hex')).digest()
    const terms = { ...rest, paymentHash: paymentHash.toString('hex') }
    const challenge = issueMpp(primitives, Buffer.from(secret), realm, terms, expires)
    return { secret, realm, preimage, expires, terms, issued: { challenge, paymentHash, amountSat: terms.amountSat } }
  })

afterEach(() => {
  vi.unstubAllGlobals()
})

test('MPP 2: mppx reads in our challenge what we wrote into it', () => {
  fc.assert(
    fc.property(cases, ({ realm, expires, terms, issued }) => {
      const { id, ...read } = Challenge.deserialize(issued.challenge)
      expect(issued.challenge).toContain(`id="${id}"`)
      expect(read).toEqual({
        realm,
        method: 'lightning',
        intent: 'charge',
        expires: new Date(expires * 1000).toISOString().replace('.000Z', 'Z'),
        request: {
          amount: String(terms.amountSat),
          currency: 'sat',
          description: terms.description,
          externalId: terms.paymentId,
          methodDetails: { invoice: terms.invoice, network: terms.network, paymentHash: terms.paymentHash },
        },
      })
    }),
  )
})

test('MPP 17: mppx computes the same id with the same secret, and a different one with another', () => {
  fc.assert(
    fc.property(cases, ({ secret, issued }) => {
      const challenge = Challenge.deserialize(issued.challenge)
      expect(Challenge.verify(challenge, { secretKey: secret })).toBe(true)
      expect(Challenge.verify(challenge, { secretKey: `${secret}x` })).toBe(false)
    }),
  )
})

test('MPP 17: mppx issues the same id as we do', () => {
  fc.assert(
    fc.property(cases, ({ secret, issued }) => {
      const { id, ...content } = Challenge.deserialize(issued.challenge)
      expect(Challenge.from({ ...content, secretKey: secret }).id).toBe(id)
    }),
  )
})

test('C52: mppx computes the same id for a challenge with a header, and echoes the header', () => {
  fc.assert(
    fc.property(cases, ({ secret, realm, preimage, expires, terms, issued }) => {
      const challenge = issueMpp(primitives, Buffer.from(secret), realm, terms, expires, MPP_HEADER)
      const read = Challenge.deserialize(challenge)
      expect([read.header, Challenge.verify(read, { secretKey: secret })]).toEqual([MPP_HEADER, true])
      expect(Challenge.serialize(read)).toBe(challenge)
      const credential = Credential.serialize(Credential.from({ challenge: read, payload: { preimage } }))
      expect(mppRefusal(credential, { ...issued, challenge }, Buffer.from(secret))).toBeUndefined()
    }),
  )
})

test('MPP 30: a credential written by mppx is valid', () => {
  fc.assert(
    fc.property(cases, fc.option(fc.webUrl()), ({ secret, preimage, issued }, source) => {
      const challenge = Challenge.deserialize(issued.challenge)
      const credential = Credential.from({ challenge, payload: { preimage }, ...(source ? { source } : {}) })
      expect(mppRefusal(Credential.serialize(credential), issued, Buffer.from(secret))).toBeUndefined()
    }),
  )
})

test('MPP 25: mppx reads our receipt', () => {
  fc.assert(
    fc.property(
      cases,
      fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true }),
      ({ issued, terms }, settled) => {
        expect(Receipt.deserialize(mppReceipt(issued.challenge, issued.paymentHash, settled.getTime()))).toEqual({
          challengeId: Challenge.deserialize(issued.challenge).id,
          method: 'lightning',
          reference: terms.paymentHash,
          status: 'success',
          timestamp: settled.toISOString(),
        })
      },
    ),
  )
})

test('MPP 2, 30: the Alby client pays the invoice of our challenge, and its credential is valid', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ secret, preimage, terms, issued }) => {
      const presented: (string | null)[] = []
      const paid: string[] = []
      vi.stubGlobal('fetch', async (_url: string, { headers }: { headers: Headers }) => {
        presented.push(headers.get('authorization'))
        if (headers.has('authorization')) return new Response('the report')
        return new Response(null, { status: 402, headers: { 'www-authenticate': issued.challenge } })
      })
      const wallet = {
        payInvoice: async ({ invoice }: { invoice: string }) => {
          paid.push(invoice)
          return { preimage }
        },
      }
      const response = await fetchWithMpp('https://merchant.example/report', {}, { wallet })
      expect(await response.text()).toBe('the report')
      expect(paid).toEqual([terms.invoice])
      expect(presented).toHaveLength(2)
      expect(mppRefusal(presented[1] ?? '', issued, Buffer.from(secret))).toBeUndefined()
    }),
  )
})
