import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jcs } from '../src/jcs.ts'
import { mppReceipt } from '../src/mpp.ts'
import {
  base64url,
  challenge,
  challengeId,
  decoded,
  EXPIRES,
  echoed,
  fieldsOf,
  HEADER,
  issued,
  issuedOf,
  issueMpp,
  key,
  type MppTerms,
  paidVectors,
  paymentHash,
  preimage,
  presented,
  requestOf,
  terms,
  type Vector,
  vectors,
  verdict,
} from './support/mpp.ts'

describe('MPP: the vectors', () => {
  test('MPP 17: the vector file is complete, with both kinds of outcomes', () => {
    expect(vectors).toHaveLength(23)
    expect(paidVectors).toHaveLength(6)
    expect(vectors.filter((vector) => vector.function === 'id')).toHaveLength(2)
  })

  for (const vector of vectors) {
    const { name, server_key, stored_challenge: stored } = vector
    if (vector.function === 'id') {
      test(`MPP 17: ${name}: the id is the HMAC of the seven slots`, () => {
        const [realm = '', method = '', intent = '', request = '', expires = '', digest = '', opaque = ''] =
          stored.hmac_input.split('|')
        const slots = { realm, method, intent, request, expires, digest, opaque }
        expect(challengeId(Buffer.from(server_key), slots)).toBe(stored.id)
      })
    } else if (vector.expect === 'paid') {
      test(`MPP 24: ${name}: the credential is right`, () => {
        expect(verdict(vector.credential_header, issuedOf(vector), Buffer.from(server_key))).toBe('right')
      })
    } else if (vector.expect === 'payment_expired') {
      test(`MPP 40: ${name}: the credential is right; its expiry is checked elsewhere`, () => {
        expect(verdict(vector.credential_header, issuedOf(vector), Buffer.from(server_key))).toBe('right')
      })
    } else {
      test(`MPP 36: ${name}: the credential is refused`, () => {
        expect(verdict(vector.credential_header, issuedOf(vector), Buffer.from(server_key))).not.toBe('right')
      })
    }
  }

  test.each([
    ['neg-wrong-preimage', 'invalid-preimage'],
    ['neg-uppercase-preimage', 'malformed-credential'],
    ['neg-missing-payload', 'malformed-credential'],
    ['neg-not-json', 'malformed-credential'],
    ['neg-bearer-scheme', 'malformed-credential'],
    ['neg-dropped-expires', 'unknown-challenge'],
    ['neg-other-key', 'unknown-challenge'],
    ['neg-noncanonical-request-echo', 'unknown-challenge'],
  ])('MPP 55: %s is a %s', (name, problem) => {
    const vector = vectors.find((one) => one.name === name) as Vector
    expect(verdict(vector.credential_header, issuedOf(vector), Buffer.from(vector.server_key))).toBe(problem)
  })

  test.each(paidVectors)('MPP 25: $name: the receipt equals the vector, except that ours has milliseconds', (vector) => {
    const settledAt = Date.parse(vector.receipt_json.timestamp)
    const receipt = mppReceipt(vector.stored_challenge.header, issuedOf(vector).paymentHash, settledAt)
    expect(decoded(receipt)).toEqual({ ...vector.receipt_json, timestamp: '2026-09-21T14:14:02.000Z' })
    const text = Buffer.from(receipt, 'base64url').toString()
    expect(base64url(text.replace('.000Z', 'Z'))).toBe(vector.receipt_jcs)
  })

  test('MPP 17: we issue exactly the bytes of the vector with our fields', () => {
    const vector = vectors.find((one) => one.name === 'valid-regtest-externalId') as Vector
    const { header, expires, request_json: request } = vector.stored_challenge
    const same: MppTerms = {
      amountSat: Number(request.amount),
      description: request.description,
      paymentId: request.externalId,
      ...request.methodDetails,
    }
    expect(issueMpp(Buffer.from(vector.server_key), vector.realm, same, Date.parse(expires) / 1000)).toBe(header)
  })
})

describe('MPP: the challenge', () => {
  test('MPP 3: it has the six parameters, once each, in this order, and nothing else', () => {
    expect(challenge).toMatch(HEADER)
  })

  test('MPP 4: its method is lightning, its intent charge', () => {
    expect(echoed).toMatchObject({ method: 'lightning', intent: 'charge' })
  })

  test.each(['gateway.example.com', 'localhost:8080', '[::1]:8080', 'a', '!#$%&()*+,-./:;<=>?@^_`{}~'])(
    'MPP 5: the realm %s is in the challenge unchanged',
    (realm) => {
      expect(fieldsOf(issueMpp(key, realm, terms, EXPIRES)).realm).toBe(realm)
    },
  )

  test.each(['', 'a|b', 'a"b', 'a\\b', 'a\nb', 'a\r', 'a\n', '\u0000', 'a\tb', 'a\u007f', 'bücher.example', 'a\u0080', '例え'])(
    'MPP 5: a realm that clients would read in two ways is never issued (row %#)',
    (realm) => {
      expect(() => issueMpp(key, realm, terms, EXPIRES)).toThrow('realm')
    },
  )

  test('MPP 6: the request is base64url without padding of its own canonical JSON', () => {
    for (const description of ['', 'a', 'ab', 'abc', 'Wetter "für" €\\ 😀\n']) {
      const { request = '' } = fieldsOf(issueMpp(key, 'a', { ...terms, description }, EXPIRES))
      expect(request).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(base64url(jcs(decoded(request)))).toBe(request)
    }
  })

  test.each([1, 9, 10, 2_100, 100_000_000, Number.MAX_SAFE_INTEGER])(
    'MPP 7: %d sat are written as decimal digits',
    (amountSat) => {
      const { amount } = requestOf(issueMpp(key, 'a', { ...terms, amountSat }, EXPIRES))
      expect(amount).toMatch(/^[1-9][0-9]*$/)
      expect(BigInt(amount)).toBe(BigInt(amountSat))
    },
  )

  test('MPP 8, 10, 11, 13, 14: the request has the currency, payment id and invoice, and neither expiry nor preimage', () => {
    expect(requestOf(challenge)).toEqual({
      amount: '2100',
      currency: 'sat',
      description: terms.description,
      externalId: terms.paymentId,
      methodDetails: { invoice: terms.invoice, network: 'regtest', paymentHash: terms.paymentHash },
    })
  })

  test('MPP 12: every description is preserved, and appears only in the request', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (description) => {
        const header = issueMpp(key, 'a', { ...terms, description }, EXPIRES)
        expect(header).toMatch(HEADER)
        expect(requestOf(header).description).toBe(description)
      }),
    )
    expect(() => issueMpp(key, 'a', { ...terms, description: '\ud83d' }, EXPIRES)).toThrow(TypeError)
  })

  test.each([
    ['2026-09-21T14:18:20Z', EXPIRES],
    ['2000-02-29T00:00:00Z', Date.UTC(2000, 1, 29) / 1000],
    // Rounded up, the challenge would outlive the invoice.
    ['2026-09-21T14:18:20Z', EXPIRES + 0.999],
  ])('MPP 15: it expires at %s, in whole seconds', (expires, seconds) => {
    expect(fieldsOf(issueMpp(key, 'a', terms, seconds)).expires).toBe(expires)
  })

  test('MPP 17: the id is the HMAC of the header’s parameters, with two empty inputs at the end', () => {
    const { id, realm, method, intent, request, expires } = echoed
    const input = [realm, method, intent, request, expires, '', ''].join('|')
    expect(id).toBe(createHmac('sha256', key).update(input).digest('base64url'))
    expect(id).toHaveLength(43)
  })

  test('MPP 18: any difference in the terms, the realm, the time or the key changes the id', () => {
    const others: Partial<MppTerms>[] = [
      { amountSat: 2_101 },
      { description: 'x' },
      { paymentId: 'x' },
      { invoice: 'x' },
      { network: 'signet' },
      { paymentHash: 'x' },
    ]
    const ids = [
      ...others.map((other) => issueMpp(key, 'gateway.example.com', { ...terms, ...other }, EXPIRES)),
      issueMpp(key, 'gateway.example.org', terms, EXPIRES),
      issueMpp(key, 'gateway.example.com', terms, EXPIRES + 1),
      issueMpp(Buffer.alloc(32, 1), 'gateway.example.com', terms, EXPIRES),
      challenge,
    ].map((header) => fieldsOf(header).id)
    expect(new Set(ids).size).toBe(10)
    expect(issueMpp(key, 'gateway.example.com', terms, EXPIRES)).toBe(challenge)
  })

  test.each([['😀'.repeat(500)], ['\u0001'.repeat(500)], ['"'.repeat(500)]])(
    'MPP 20: with the longest description it is one line of ASCII under 8 KB, and its credential is accepted (row %#)',
    (description) => {
      const longest = { ...terms, description, invoice: `lnbcrt${'q'.repeat(700)}` }
      const header = issueMpp(key, `${'a'.repeat(253)}:65535`, longest, EXPIRES)
      expect(header).toMatch(/^[ -~]+$/)
      expect(header.length).toBeLessThan(8 * 1024)
      const answer = presented({ challenge: fieldsOf(header), payload: { preimage }, source: 'did:key:z6Mk' })
      expect(verdict(answer, { ...issued, challenge: header })).toBe('right')
    },
  )
})

describe('MPP: the receipt', () => {
  test('MPP 25: it names the challenge, the hash and the time of settlement, in canonical JSON without padding', () => {
    const receipt = mppReceipt(challenge, paymentHash, Date.parse('2026-09-21T14:14:02.345Z'))
    expect(receipt).toMatch(/^[A-Za-z0-9_-]+$/)
    expect(Buffer.from(receipt, 'base64url').toString()).toBe(
      `{"challengeId":"${echoed.id}","method":"lightning","reference":"${terms.paymentHash}","status":"success","timestamp":"2026-09-21T14:14:02.345Z"}`,
    )
    expect(receipt).toBe(mppReceipt(challenge, paymentHash, Date.parse('2026-09-21T14:14:02.345Z')))
  })

  test('MPP 25: there is no receipt for a challenge that is not ours', () => {
    for (const text of ['', 'Payment', 'L402 macaroon="x"', 'Payment id=""', `x${challenge}`]) {
      expect(() => mppReceipt(text, paymentHash, 0)).toThrow('challenge')
    }
  })
})
