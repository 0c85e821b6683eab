import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyTerms, base64, fresh, INVOICE, issueL402, macaroonIn, status, terms, words } from './support/l402.ts'
import { A, B, hex, meaningOfMacaroon, vectors } from './support/l402-by-hand.ts'

describe('the vectors', () => {
  test.each(
    vectors.vectors.map((vector) => ({
      ...vector,
      want: vector.expect.valid ? 200 : vector.expect.reason === 'expired' ? 410 : 400,
    })),
  )('L402: vector $n, $name: $want', ({ credential: text, rootKeyHex, paymentHashHex, tokenIdHex, now, service, want }) => {
    const payment = { ...A, rootKey: hex(rootKeyHex), paymentHash: hex(paymentHashHex), tokenId: hex(tokenIdHex) }
    expect(status(text, { payment, now, service })).toBe(want)
  })

  test('L402: the vectors contain all three outcomes', () => {
    expect(vectors.vectors).toHaveLength(35)
    expect(vectors.vectors.filter((vector) => vector.expect.valid)).toHaveLength(13)
    expect(vectors.vectors.filter((vector) => vector.expect.reason === 'expired')).toHaveLength(2)
  })
})

describe('the challenge', () => {
  test('L402 2, 3: one line that every client reads, in padded standard base64, whatever was sold', () => {
    fc.assert(
      fc.property(words, anyTerms, (rootKey, sold) => {
        const challenge = issueL402(rootKey, sold)
        expect(challenge).toMatch(/^L402 macaroon="[A-Za-z0-9+/]+={0,2}", invoice="ln[a-z0-9]+"$/)
        expect(challenge).not.toMatch(/[\r\n]/)
        expect(challenge.endsWith(`, invoice="${sold.invoice}"`)).toBe(true)
        expect(macaroonIn(challenge).length % 4).toBe(0)
      }),
    )
  })

  test('L402 2: the worked example is the challenge, to the letter', () => {
    expect(issueL402(A.rootKey, terms)).toBe(`L402 macaroon="${base64}", invoice="${INVOICE}"`)
    expect(fresh).toHaveLength(198)
    expect(base64).toHaveLength(264)
  })

  test.each(['', 'lnbc1"', 'lnbc1\r\nset-cookie: x', 'lnbc1\n', 'lnbc1 ', 'LNBC1', 'bc1q', 'lnbc1é', 'x lnbc1'])(
    'L402 2: text that is not an invoice is never put into a header: %j',
    (invoice) => {
      expect(() => issueL402(A.rootKey, { ...terms, invoice })).toThrow(RangeError)
    },
  )

  test('L402 5, 6, 11: the identifier is 00 00, the payment hash and the token id; the caveats are these three in this order', () => {
    fc.assert(
      fc.property(words, anyTerms, (rootKey, sold) => {
        const bytes = Buffer.from(macaroonIn(issueL402(rootKey, sold)), 'base64')
        const read = meaningOfMacaroon(bytes)
        expect(bytes[0]).toBe(2)
        expect(read?.identifier).toBe(`0000${sold.paymentHash.toString('hex')}${sold.tokenId.toString('hex')}`)
        expect(read?.location).toBe(Buffer.from('boltyard').toString('hex'))
        expect(read?.caveats.map((caveat) => hex(caveat).toString())).toEqual([
          'services=boltyard:0',
          `boltyard_valid_until=${sold.validUntilSeconds}`,
          `payment_id=${sold.paymentId}`,
        ])
      }),
    )
  })

  test.each([1.5, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e21])(
    'L402 11: a challenge is not issued with an expiry that its credential would be refused for: %d',
    (validUntilSeconds) => {
      expect(() => issueL402(A.rootKey, { ...terms, validUntilSeconds })).toThrow(RangeError)
    },
  )

  test('L402 5: a hash or token id of the wrong length is refused even if the total length is right', () => {
    const both = Buffer.concat([A.paymentHash, A.tokenId])
    for (const at of [0, 31, 33, 64])
      expect(() => issueL402(A.rootKey, { ...terms, paymentHash: both.subarray(0, at), tokenId: both.subarray(at) })).toThrow(
        RangeError,
      )
  })

  test('L402 8: a different token id gives a different macaroon and signature', () => {
    const [one, other] = [A.tokenId, B.tokenId].map((tokenId) => macaroonIn(issueL402(A.rootKey, { ...terms, tokenId })))
    expect(one?.slice(-42)).not.toBe(other?.slice(-42))
  })

  test.each([
    ['Aperture', /(LSAT|L402) macaroon="(.*?)", invoice="(.*?)"/],
    ['lnget', /(LSAT|L402)\s+macaroon="([^"]+)",\s*invoice="([^"]+)"/i],
  ])('L402 17: %s finds scheme, macaroon and invoice in the challenge', (_, pattern) => {
    expect(pattern.exec(issueL402(A.rootKey, terms))?.slice(1)).toEqual(['L402', base64, INVOICE])
  })

  test('L402 19: an issued challenge is accepted with its preimage until it expires', () => {
    fc.assert(
      fc.property(words, words, anyTerms, (rootKey, preimage, sold) => {
        const payment = { ...sold, rootKey, preimage: '', paymentHash: createHash('sha256').update(preimage).digest() }
        const challenge = issueL402(rootKey, { ...sold, paymentHash: payment.paymentHash })
        const text = `L402 ${macaroonIn(challenge)}:${preimage.toString('hex')}`
        expect(status(text, { payment, now: sold.validUntilSeconds - 1 })).toBe(200)
        expect(status(text, { payment, now: sold.validUntilSeconds })).toBe(410)
      }),
    )
  })
})
