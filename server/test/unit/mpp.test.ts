import { createHash, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { inspect, isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type JcsValue, jcs } from '../../src/gateway/jcs.ts'
import { challengeId, issueMpp, judgeMpp, type MppTerms, mppReceipt } from '../../src/gateway/mpp.ts'
import { Problem } from '../../src/problems.ts'

const PROBLEMS = 'https://paymentauth.org/problems/lightning/'
const FIELDS = ['id', 'realm', 'method', 'intent', 'request', 'expires'] as const
const HEADER = /^Payment id="([^"]*)", realm="([^"]*)", method="([^"]*)", intent="([^"]*)", request="([^"]*)", expires="([^"]*)"$/

type Vector = {
  name: string
  expect?: 'paid' | 'invalid_payment_credential' | 'payment_expired'
  function?: 'id'
  server_key: string
  stored_challenge: Record<'id' | 'header' | 'expires' | 'hmac_input' | 'payment_hash' | 'preimage', string> & {
    request_json: any
  }
  realm: string
  credential_header: string
  receipt_json?: any
  receipt_jcs?: string
}
const { vectors }: { vectors: Vector[] } = JSON.parse(
  readFileSync(new URL('../../../test/vectors/mpp.json', import.meta.url), 'utf8'),
)
const paidVectors = vectors.filter((vector) => vector.expect === 'paid')

const issuedOf = ({ stored_challenge: { header, payment_hash, request_json } }: Vector) => ({
  challenge: header,
  paymentHash: Buffer.from(payment_hash, 'hex'),
  amountSat: Number(request_json.amount),
})

const key = Buffer.from('0123456789abcdef0123456789abcdef')
const preimage = '5a'.repeat(32)
const sha256 = (hex: string) => createHash('sha256').update(Buffer.from(hex, 'hex')).digest()
const paymentHash = sha256(preimage)
const terms: MppTerms = {
  amountSat: 2_100,
  description: 'Weather report',
  paymentId: 'pay_0123456789',
  invoice: 'lnbcrt21u1pexample',
  network: 'regtest',
  paymentHash: paymentHash.toString('hex'),
}
const EXPIRES = Date.parse('2026-09-21T14:18:20Z') / 1000
const challenge = issueMpp(key, 'gateway.example.com', terms, EXPIRES)
const issued = { challenge, paymentHash, amountSat: terms.amountSat }

const base64url = (text: string | Buffer) => Buffer.from(text as string).toString('base64url')
const decoded = (token: string) => JSON.parse(Buffer.from(token, 'base64url').toString())
const fieldsOf = (header: string): Record<string, string> =>
  Object.fromEntries(FIELDS.map((name, at) => [name, HEADER.exec(header)?.[at + 1] ?? '']))
const requestOf = (header: string) => decoded(fieldsOf(header).request ?? '')
const headerOf = (fields: Record<string, string>) => `Payment ${FIELDS.map((name) => `${name}="${fields[name]}"`).join(', ')}`
const presented = (json: unknown) => `Payment ${base64url(JSON.stringify(json))}`
const echoed = fieldsOf(challenge)
const credential = presented({ challenge: echoed, payload: { preimage } })

/** What is wrong with it, as the end of the problem's address. Whatever is no 400 of ours is thrown on, and fails the test. */
function verdict(text: string, stored = issued, under = key): string {
  try {
    judgeMpp(text, stored, under)
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 400 || error.code !== 'invalid_payment_credential') throw error
    return String(error.details.problem).replace(PROBLEMS, '')
  }
  return 'right'
}

describe('MPP: the vectors', () => {
  test('MPP 17: the file is the whole file, with both kinds of answers', () => {
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
      test(`MPP 40: ${name}: the credential is right; that its time is over is for others to say`, () => {
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

  test.each(paidVectors)('MPP 25: $name: the receipt is the vector’s, but that ours names the millisecond', (vector) => {
    const settledAt = Date.parse(vector.receipt_json.timestamp)
    const receipt = mppReceipt(vector.stored_challenge.header, issuedOf(vector).paymentHash, settledAt)
    expect(decoded(receipt)).toEqual({ ...vector.receipt_json, timestamp: '2026-09-21T14:14:02.000Z' })
    const text = Buffer.from(receipt, 'base64url').toString()
    expect(base64url(text.replace('.000Z', 'Z'))).toBe(vector.receipt_jcs)
  })

  test('MPP 17: we issue the very bytes of the vector that has our fields', () => {
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

describe('MPP: the canonical JSON', () => {
  const values = fc.letrec<{ value: JcsValue; object: JcsValue }>((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, fc.string({ unit: 'binary' }), tie('object')),
    object: fc.dictionary(fc.string({ unit: 'binary' }), tie('value'), { maxKeys: 6 }),
  })).value

  /** By the bytes of UTF-16, big end first, and by hand: nothing of the codec's way. */
  const bigEndian = (text: string) => Buffer.from(text, 'utf16le').swap16()
  function canonical(value: JcsValue): string {
    if (typeof value === 'string') return JSON.stringify(value)
    const names = Object.keys(value).sort((one, other) => Buffer.compare(bigEndian(one), bigEndian(other)))
    let text = ''
    for (const name of names) text += `,${JSON.stringify(name)}:${canonical(value[name] as JcsValue)}`
    return `{${text.slice(1)}}`
  }

  test('MPP 6: it is the same value, and its names are in the order of UTF-16 code units at every level', () => {
    fc.assert(
      fc.property(values, (value) => {
        expect(jcs(value)).toBe(canonical(value))
        expect(canonical(JSON.parse(jcs(value)))).toBe(canonical(value))
      }),
      { numRuns: 500 },
    )
  })

  test('MPP 6: the example of RFC 8785, where code points and code units disagree', () => {
    const names = ['\u20ac', '\r', '\ufb33', '1', '\u{1f600}', '\u0080', '\u00f6']
    const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\u{1f600}', '\ufb33']
    const text = jcs(Object.fromEntries(names.map((name) => [name, 'x'])))
    expect([...text.matchAll(/"([^"]+)":/g)].map((match) => JSON.parse(`"${match[1]}"`))).toEqual(sorted)
  })

  test('MPP 6: escapes are the shortest there are, and nothing else is escaped', () => {
    expect(jcs('\b\t\n\f\r"\\/\u0001\u001f\u007f\u2028é€😀')).toBe('"\\b\\t\\n\\f\\r\\"\\\\/\\u0001\\u001f\u007f\u2028é€😀"')
  })

  test.each([['\ud800'], ['a\udc00b'], [{ a: { b: '\udfff' } }], [{ '\ud83d': 'x' }]])(
    'MPP 6: a lone surrogate is refused wherever it is (row %#)',
    (value) => {
      expect(() => jcs(value as JcsValue)).toThrow(TypeError)
    },
  )

  test.each([[1], [null], [undefined], [true], [['a']], [{ a: 1 }], [{ a: { b: null } }], [{ a: ['x'] }], [() => 'x'], [1n]])(
    'MPP 6: what is no string and no object of strings is refused (row %#)',
    (value) => {
      expect(() => jcs(value as unknown as JcsValue)).toThrow(TypeError)
    },
  )
})

describe('MPP: the challenge', () => {
  test('MPP 3: it has the six parameters, once each, in this order, and nothing else', () => {
    expect(challenge).toMatch(HEADER)
  })

  test('MPP 4: its method is lightning, its intent charge', () => {
    expect(echoed).toMatchObject({ method: 'lightning', intent: 'charge' })
  })

  test.each(['gateway.example.com', 'localhost:8080', '[::1]:8080', 'a', '!#$%&()*+,-./:;<=>?@^_`{}~'])(
    'MPP 5: the realm %s stands in it as it is',
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

  test('MPP 8, 10, 11, 13, 14: the request says sat, whose payment, which invoice, and neither expiry nor preimage', () => {
    expect(requestOf(challenge)).toEqual({
      amount: '2100',
      currency: 'sat',
      description: terms.description,
      externalId: terms.paymentId,
      methodDetails: { invoice: terms.invoice, network: 'regtest', paymentHash: terms.paymentHash },
    })
  })

  test('MPP 12: every description survives, whatever is in it, and never leaves the request', () => {
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
    // Rounded up, it would outlive the invoice.
    ['2026-09-21T14:18:20Z', EXPIRES + 0.999],
  ])('MPP 15: it expires at %s, in whole seconds', (expires, seconds) => {
    expect(fieldsOf(issueMpp(key, 'a', terms, seconds)).expires).toBe(expires)
  })

  test('MPP 17: the id is the HMAC of what stands in the header, with two empty slots at the end', () => {
    const { id, realm, method, intent, request, expires } = echoed
    const input = [realm, method, intent, request, expires, '', ''].join('|')
    expect(id).toBe(createHmac('sha256', key).update(input).digest('base64url'))
    expect(id).toHaveLength(43)
  })

  test('MPP 18: whatever differs in the terms, the realm, the time or the key, the id differs', () => {
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
    'MPP 20: with the longest description it is one line of ASCII under 8 KB, and its credential is taken (row %#)',
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

describe('MPP: the credential', () => {
  const token = credential.slice('Payment '.length)
  const withToken = (text: string | Buffer) => `Payment ${base64url(text)}`
  const json = JSON.stringify({ challenge: echoed, payload: { preimage } })
  const payload = { preimage }

  test('MPP 24: the right one is right, as often as it is asked', () => {
    for (let times = 0; times < 3; times++) expect(verdict(credential)).toBe('right')
  })

  test.each([
    ['payment', 'lower case', `payment ${token}`],
    ['PAYMENT', 'upper case', `PAYMENT ${token}`],
    ['Payment', 'many spaces', `Payment     ${token}`],
    ['Payment', 'spaces and tabs around it', ` \t ${credential}\t \t`],
  ])('MPP 28: the scheme %s is taken: %s', (_scheme, _why, text) => {
    expect(verdict(text)).toBe('right')
  })

  test.each([
    ['another scheme', `Bearer ${token}`],
    ['no scheme', token],
    ['a scheme without its token', 'Payment'],
    ['a scheme without its token, with a space', 'Payment '],
    ['nothing', ''],
    ['no space', `Payment${token}`],
    ['a tab for the space', `Payment\t${token}`],
    ['a colon', `Payment: ${token}`],
    ['the scheme twice', `Payment ${credential}`],
    ['a longer scheme', `XPayment ${token}`],
    ['a line end behind it', `${credential}\n`],
    ['a line before it', `x\n${credential}`],
    ['a no-break space around it', `\u00a0${credential}`],
    ['two credentials', `${credential}, ${credential}`],
    ['parameters', `${credential} a="b"`],
    ['a challenge', challenge],
  ])('MPP 28: %s is refused', (_what, text) => {
    expect(verdict(text)).toBe('malformed-credential')
  })

  test.each([
    ['an L402 credential', `L402 AgEEbHNhdA:${preimage}`],
    ['an LSAT credential', `LSAT AgEEbHNhdA:${preimage}`],
    ['what an L402 credential holds, under our scheme', `Payment AgEEbHNhdA:${preimage}`],
  ])('MPP 51: %s is refused', (_what, text) => {
    expect(verdict(text)).toBe('malformed-credential')
  })

  test('MPP 29: padding is taken, whether it is due or not', () => {
    for (const source of ['', 'a', 'ab', 'abc']) {
      const bare = presented({ challenge: echoed, payload, source })
      expect(bare).not.toContain('=')
      for (const padding of ['', '=', '==']) expect(verdict(bare + padding)).toBe('right')
      expect(verdict(`${bare}===`)).toBe('malformed-credential')
    }
  })

  test('MPP 29: the other alphabet is refused, and so is dirt that a lenient decoder skips', () => {
    const dashes = presented({ challenge: echoed, payload, source: '~~~???>>>~~~' })
    expect(verdict(dashes)).toBe('right')
    expect(dashes).toMatch(/-/)
    expect(dashes).toMatch(/_/)
    expect(verdict(dashes.replaceAll('-', '+'))).toBe('malformed-credential')
    expect(verdict(dashes.replaceAll('_', '/'))).toBe('malformed-credential')
    const middle = 100
    for (const dirt of ['.', '!', '\n', ' ', '=', '\u0000', 'é', '\u{1f600}', ',']) {
      expect(verdict(credential.slice(0, middle) + dirt + credential.slice(middle))).toBe('malformed-credential')
    }
  })

  test('MPP 29: a last character that completes no byte is refused, not dropped', () => {
    const whole = ['', 'a', 'ab']
      .map((source) => presented({ challenge: echoed, payload, source }))
      .find((text) => text.length % 4 === 'Payment '.length % 4)
    expect(verdict(`${whole}`)).toBe('right')
    expect(verdict(`${whole}A`)).toBe('malformed-credential')
  })

  test.each([
    ['null', 'null'],
    ['an array', `[${json}]`],
    ['a number', '12'],
    ['a string', JSON.stringify(json)],
    ['true', 'true'],
    ['no JSON', 'hello'],
    ['nothing', ' '],
    ['JSON that was cut short', json.slice(0, -1)],
    ['JSON with more behind it', `${json}x`],
    ['JSON behind a byte order mark', `\ufeff${json}`],
    ['much too deep JSON', '['.repeat(12_000)],
    ['much too deep JSON that ends', `{"a":${'['.repeat(6_000)}${']'.repeat(6_000)}}`],
  ])('MPP 29: %s in the token is refused', (_what, text) => {
    expect(verdict(withToken(text))).toBe('malformed-credential')
  })

  test.each([
    ['a stray byte', [0xff]],
    ['a byte cut off', [0xc3]],
    ['an overlong form', [0xc0, 0x80]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['what is above the last code point', [0xf4, 0x90, 0x80, 0x80]],
  ])(
    'MPP 29: %s, even in a field that is ignored, is no UTF-8 and refused; the next credential is not touched by it',
    (_what, wrong) => {
      const [before = '', after = ''] = JSON.stringify({ challenge: echoed, payload, source: 'HERE' }).split('HERE')
      const spoilt = Buffer.concat([Buffer.from(before), Buffer.from(wrong), Buffer.from(after)])
      expect(verdict(withToken(spoilt))).toBe('malformed-credential')
      expect(verdict(withToken(`${before}é😀${after}`))).toBe('right')
    },
  )

  test('MPP 30: the order of the keys is free', () => {
    const backwards = Object.fromEntries(Object.entries(echoed).reverse())
    expect(verdict(presented({ payload, challenge: backwards }))).toBe('right')
    expect(verdict(withToken(jcs({ challenge: echoed, payload, source: 'did:x' })))).toBe('right')
    expect(verdict(withToken(JSON.stringify({ challenge: echoed, payload }, null, 2)))).toBe('right')
  })

  test('MPP 31: extra fields are ignored at every level, also those that JavaScript has a meaning for', () => {
    const extra = { extra: [1, { a: null }], constructor: 1, toString: null, hasOwnProperty: 'x' }
    expect(verdict(presented({ ...extra, challenge: { ...extra, ...echoed }, payload: { ...extra, preimage } }))).toBe('right')
    const proto = (text: string) => text.replace('{', '{"__proto__":{"opaque":"x","digest":"x","polluted":"x"},')
    const text = `{"__proto__":{"polluted":"x"},"challenge":${proto(JSON.stringify(echoed))},"payload":${proto(JSON.stringify(payload))}}`
    expect(verdict(withToken(text))).toBe('right')
    expect(({} as any).polluted).toBeUndefined()
  })

  test.each([
    ['everything', `{"__proto__":${json}}`],
    ['the challenge', `{"challenge":{"__proto__":${JSON.stringify(echoed)}},"payload":${JSON.stringify(payload)}}`],
    ['the payload', `{"challenge":${JSON.stringify(echoed)},"payload":{"__proto__":${JSON.stringify(payload)}}}`],
  ])('MPP 31: %s inside __proto__ is not there', (_what, text) => {
    expect(verdict(withToken(text))).toBe('malformed-credential')
  })

  test.each(['did:pkh:eip155:1:0xabc', '', 'x'.repeat(1_000), '"\\ 😀'])(
    'MPP 32: a source is taken, whatever it says (row %#)',
    (source) => {
      expect(verdict(presented({ challenge: echoed, payload, source }))).toBe('right')
    },
  )

  const wrongTypes = [null, true, 0, 1, [], ['x'], {}, { a: 'b' }]
  test.each(wrongTypes.map((value) => [JSON.stringify(value), value]))(
    'MPP 33: %s is no challenge, no payload, no preimage and no field',
    (_text, value) => {
      expect(verdict(presented({ challenge: value, payload }))).toBe('malformed-credential')
      for (const wrong of [{ payload: value }, { payload: { preimage: value } }]) {
        expect(verdict(presented({ challenge: echoed, ...wrong }))).toBe('malformed-credential')
      }
      for (const name of FIELDS) {
        expect(verdict(presented({ challenge: { ...echoed, [name]: value }, payload }))).toBe('malformed-credential')
      }
    },
  )

  test.each([
    ['the challenge', { payload }],
    ['the payload', { challenge: echoed }],
    ['the preimage', { challenge: echoed, payload: {} }],
    ['everything', {}],
  ])('MPP 33: without %s it is refused', (_what, value) => {
    expect(verdict(presented(value))).toBe('malformed-credential')
  })

  test('MPP 33: a list with one right string in it is not that string', () => {
    expect(verdict(presented({ challenge: echoed, payload: { preimage: [preimage] } }))).toBe('malformed-credential')
    for (const name of FIELDS) {
      expect(verdict(presented({ challenge: { ...echoed, [name]: [echoed[name]] }, payload }))).toBe('malformed-credential')
    }
  })

  test.each([
    ['upper case', preimage.toUpperCase()],
    ['one upper case digit', `${preimage.slice(0, -1)}A`],
    ['62 digits', preimage.slice(2)],
    ['63 digits', preimage.slice(1)],
    ['66 digits', `${preimage}5a`],
    ['0x before it', `0x${preimage}`],
    ['0x for the first digits', `0x${preimage.slice(2)}`],
    ['a space before it', ` ${preimage}`],
    ['a line end behind it', `${preimage}\n`],
    ['a letter that is no digit', `${preimage.slice(1)}g`],
    ['nothing', ''],
  ])('MPP 34: a preimage with %s is refused', (_what, wrong) => {
    // The hash is of the very digits, so that only their spelling can be what is wrong.
    const stored = { ...issued, paymentHash: sha256(wrong) }
    expect(verdict(presented({ challenge: echoed, payload: { preimage: wrong } }), stored)).toBe('malformed-credential')
  })

  test('MPP 35: a preimage that hashes to something else is refused, and the right one passes after it', () => {
    const guess = presented({ challenge: echoed, payload: { preimage: '5b'.repeat(32) } })
    expect(verdict(guess)).toBe('invalid-preimage')
    expect(verdict(presented({ challenge: echoed, payload: { preimage: terms.paymentHash } }))).toBe('invalid-preimage')
    expect(verdict(credential)).toBe('right')
  })

  describe.each(FIELDS)('MPP 36: the echoed %s', (name) => {
    const value = echoed[name] ?? ''
    const other = (value.startsWith('A') ? 'B' : 'A') + value.slice(1)
    test.each([
      ['changed in its first character', other],
      ['changed in its last character', value.slice(0, -1) + (value.endsWith('A') ? 'B' : 'A')],
      ['in upper case', value.toUpperCase() === value ? value.toLowerCase() : value.toUpperCase()],
      ['cut short', value.slice(0, -1)],
      ['with more behind it', `${value}A`],
      ['with a space behind it', `${value} `],
      ['with padding behind it', `${value}=`],
      ['with a quote behind it', `${value}"`],
      ['with the next parameter in it', `${value}", realm="x`],
      ['with a lone surrogate in it', `${value}\ud800`],
      ['empty', ''],
    ])('MPP 36: %s is refused', (_how, changed) => {
      expect(verdict(presented({ challenge: { ...echoed, [name]: changed }, payload }))).toBe('unknown-challenge')
    })

    test('MPP 36: left out is refused', () => {
      const { [name]: _left, ...rest } = echoed
      expect(verdict(presented({ challenge: rest, payload }))).toBe(
        // Elsewhere a challenge may have no expiry: a credential without one is well formed, only not an answer to ours.
        name === 'expires' ? 'unknown-challenge' : 'malformed-credential',
      )
    })

    test('MPP 36: exchanged with any other field is refused', () => {
      for (const another of FIELDS.filter((one) => one !== name)) {
        const swapped = { ...echoed, [name]: echoed[another], [another]: echoed[name] }
        expect(verdict(presented({ challenge: swapped, payload }))).toBe('unknown-challenge')
      }
    })
  })

  test('MPP 36: the same instant in other words is refused', () => {
    for (const expires of ['2026-09-21T14:18:20.000Z', '2026-09-21T14:18:20+00:00', '2026-09-21t14:18:20z']) {
      expect(verdict(presented({ challenge: { ...echoed, expires }, payload }))).toBe('unknown-challenge')
    }
  })

  test.each([['opaque'], ['digest']])('MPP 36: the field %s, which was never issued, is refused, even empty', (name) => {
    for (const value of ['', 'x', null, false, 0, [], {}]) {
      expect(verdict(presented({ challenge: { ...echoed, [name]: value }, payload }))).toBe('unknown-challenge')
    }
  })

  test('MPP 37: a genuine credential of another payment is refused here, and right there', () => {
    const other = { ...terms, paymentId: 'pay_other', invoice: 'lnbcrt21u1pother' }
    const otherChallenge = issueMpp(key, 'gateway.example.com', other, EXPIRES)
    const genuine = presented({ challenge: fieldsOf(otherChallenge), payload })
    expect(verdict(genuine, { ...issued, challenge: otherChallenge })).toBe('right')
    expect(verdict(genuine)).toBe('unknown-challenge')
    expect(verdict(credential, { ...issued, challenge: otherChallenge })).toBe('unknown-challenge')
  })

  test('MPP 38: a request with the same JSON in other bytes is refused', () => {
    const request = requestOf(challenge)
    const spellings = [
      JSON.stringify(request, null, 1),
      JSON.stringify(Object.fromEntries(Object.entries(request).reverse())),
      JSON.stringify(request).replace('Weather', '\\u0057eather'),
      `${JSON.stringify(request)} `,
    ].map(base64url)
    for (const spelling of [...spellings, `${echoed.request}=`, `${echoed.request}==`]) {
      expect(decoded(spelling)).toEqual(request)
      expect(verdict(presented({ challenge: { ...echoed, request: spelling }, payload }))).toBe('unknown-challenge')
    }
  })

  test('MPP 39: a description beside the request may be echoed or not', () => {
    expect(verdict(presented({ challenge: { ...echoed, description: 'Something else' }, payload }))).toBe('right')
    expect(verdict(presented({ challenge: { ...echoed, description: 7 }, payload }))).toBe('right')
  })

  test('MPP 22: what equals the stored challenge is refused where it was not issued under our key', () => {
    const foreign = issueMpp(Buffer.alloc(32, 7), 'gateway.example.com', terms, EXPIRES)
    const answer = presented({ challenge: fieldsOf(foreign), payload })
    expect(verdict(answer, { ...issued, challenge: foreign }, Buffer.alloc(32, 7))).toBe('right')
    expect(verdict(answer, { ...issued, challenge: foreign })).toBe('unknown-challenge')
  })

  test('MPP 22: an id that someone wrote into the row beside other values is refused', () => {
    const cheaper = fieldsOf(issueMpp(key, 'gateway.example.com', { ...terms, amountSat: 1 }, EXPIRES))
    const forged = { ...cheaper, id: echoed.id ?? '' }
    const stored = { ...issued, challenge: headerOf(forged), amountSat: 1 }
    expect(verdict(presented({ challenge: forged, payload }), stored)).toBe('unknown-challenge')
    const shorter = { ...echoed, id: 'short' }
    expect(verdict(presented({ challenge: shorter, payload }), { ...issued, challenge: headerOf(shorter) })).toBe(
      'unknown-challenge',
    )
  })

  test('MPP 36: a challenge of ours over another amount or currency than the payment’s is refused', () => {
    expect(verdict(credential, { ...issued, amountSat: 2_101 })).toBe('unknown-challenge')
    for (const request of [
      { amount: '2100', currency: 'BTC' },
      { amount: 2_100, currency: 'sat' },
      { currency: 'sat' },
      null,
      'x',
    ]) {
      const slots = { ...echoed, request: base64url(JSON.stringify(request)) } as any
      const fields = { ...slots, id: challengeId(key, slots) }
      expect(verdict(presented({ challenge: fields, payload }), { ...issued, challenge: headerOf(fields) })).toBe(
        'unknown-challenge',
      )
    }
    const slots = { ...echoed, request: base64url('{"amount":"2100","currency":"sat"}') } as any
    const fields = { ...slots, id: challengeId(key, slots) }
    expect(verdict(presented({ challenge: fields, payload }), { ...issued, challenge: headerOf(fields) })).toBe('right')
  })

  test('MPP 54: what has another length than the stored is another, not an error', () => {
    for (const stored of ['', 'x', challenge.slice(1), `${challenge} `]) {
      expect(verdict(credential, { ...issued, challenge: stored })).toBe('unknown-challenge')
    }
    for (const hash of [Buffer.alloc(0), paymentHash.subarray(1), Buffer.concat([paymentHash, paymentHash])]) {
      expect(verdict(credential, { ...issued, paymentHash: hash })).toBe('invalid-preimage')
    }
  })

  test('MPP 42, 44: no clock is asked: long after its time a right one is right and a wrong one is refused', () => {
    const old = issueMpp(key, 'gateway.example.com', terms, 1_000_000_000)
    const stored = { ...issued, challenge: old }
    expect(verdict(presented({ challenge: fieldsOf(old), payload }), stored)).toBe('right')
    expect(verdict(presented({ challenge: fieldsOf(old), payload: { preimage: '00'.repeat(32) } }), stored)).toBe(
      'invalid-preimage',
    )
    expect(verdict(credential, stored)).toBe('unknown-challenge')
    expect(verdict('Payment garbage', stored)).toBe('malformed-credential')
  })

  test('MPP 52: 4 KB and more are taken, to the last of 16 KB; one character above is refused', () => {
    const sourced = (length: number) => presented({ challenge: echoed, payload, source: 'x'.repeat(length) })
    expect(sourced(4_096).length).toBeGreaterThan(4_096)
    expect(verdict(sourced(4_096))).toBe('right')
    const nearly = sourced(11_000)
    expect(nearly.length).toBeGreaterThan(15_000)
    const longest = nearly.replace(' ', ' '.repeat(16 * 1024 - nearly.length + 1))
    expect(longest).toHaveLength(16 * 1024)
    expect(verdict(longest)).toBe('right')
    expect(verdict(longest.replace(' ', '  '))).toBe('malformed-credential')
    expect(verdict(sourced(13_000))).toBe('malformed-credential')
  })

  test('MPP 52: the longest rubbish is refused at once, also what makes careless patterns walk back', () => {
    const rubbish = [' ', '\t', 'Payment ', 'a', '=', 'Payment', 'Payment a ', ' \t'].map((piece) =>
      piece.repeat(16 * 1024).slice(0, 16 * 1024),
    )
    const tails = rubbish.flatMap((text) => [text, `Payment a${text}`.slice(0, 16 * 1024 - 1).concat('!')])
    const start = performance.now()
    for (const text of tails) expect(verdict(text)).toBe('malformed-credential')
    // A pattern that walks back needs a tenth of a second for each of these; this one well under a millisecond.
    expect(performance.now() - start).toBeLessThan(1_000)
  })

  test('MPP 26: whatever is refused, the problem holds nothing of the credential, nor does anything under it', () => {
    const refused = [
      // The parser's own error would quote how this begins.
      withToken(`x${preimage}`),
      withToken(json.slice(0, -1)),
      withToken(`${json}${preimage}`),
      `Bearer ${preimage}`,
      `Payment ${preimage}!`,
      presented({ challenge: echoed, payload: { preimage: preimage.toUpperCase() } }),
      presented({ challenge: echoed, payload: { preimage: '5b'.repeat(32) } }),
      presented({ challenge: { ...echoed, realm: preimage }, payload }),
      presented({ challenge: { ...echoed, opaque: preimage }, payload }),
      presented({ challenge: { ...echoed, id: { preimage } }, payload }),
      presented({ challenge: preimage, payload }),
    ]
    for (const text of refused) {
      let problem: unknown
      try {
        judgeMpp(text, issued, key)
      } catch (error) {
        problem = error
      }
      expect(problem).toBeInstanceOf(Problem)
      const shown = inspect(problem, { depth: Infinity, showHidden: true }) + JSON.stringify((problem as Problem).body())
      for (const secret of [preimage.slice(0, 8), preimage.slice(0, 8).toUpperCase(), '5b5b', echoed.id, text.slice(8, 40)]) {
        expect(shown).not.toContain(secret)
      }
      expect((problem as Problem).cause).toBeUndefined()
    }
  })

  test('MPP 55: the error is a code, a message and the problem’s address', () => {
    expect(() => judgeMpp('', issued, key)).toThrow(
      expect.objectContaining({
        code: 'invalid_payment_credential',
        status: 400,
        details: { problem: 'https://paymentauth.org/problems/lightning/malformed-credential' },
      }),
    )
  })
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

  test('MPP 25: there is none for what is no challenge of ours', () => {
    for (const text of ['', 'Payment', 'L402 macaroon="x"', 'Payment id=""', `x${challenge}`]) {
      expect(() => mppReceipt(text, paymentHash, 0)).toThrow('challenge')
    }
  })
})

describe('MPP: whatever comes', () => {
  const withScheme = (text: string | Buffer) => `Payment ${base64url(text)}`
  const hex64 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex'))
  const cases = fc.record({
    key: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)),
    realm: fc.stringMatching(/^[a-z0-9.:-]{1,40}$/),
    amountSat: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    description: fc.string({ unit: 'binary', maxLength: 100 }),
    paymentId: fc.stringMatching(/^[a-z0-9_]{1,30}$/),
    invoice: fc.stringMatching(/^lnbcrt[a-z0-9]{1,80}$/),
    network: fc.constantFrom('mainnet' as const, 'regtest' as const, 'signet' as const),
    preimage: hex64,
    expires: fc.integer({ min: 1, max: 4_000_000_000 }),
  })
  const made = cases.map(({ key, realm, preimage, expires, ...rest }) => {
    const hash = sha256(preimage)
    const header = issueMpp(key, realm, { ...rest, paymentHash: hash.toString('hex') }, expires)
    return {
      key,
      preimage,
      fields: fieldsOf(header),
      stored: { challenge: header, paymentHash: hash, amountSat: rest.amountSat },
    }
  })

  test('MPP 24, 36: what we issue is right when it is answered, and refused with any field changed to anything', () => {
    fc.assert(
      fc.property(made, fc.constantFrom(...FIELDS), fc.string({ unit: 'binary' }), hex64, (one, name, text, guess) => {
        const answer = presented({ challenge: one.fields, payload: { preimage: one.preimage } })
        expect(verdict(answer, one.stored, one.key)).toBe('right')
        fc.pre(one.fields[name] !== text && one.preimage !== guess)
        const changed = presented({ challenge: { ...one.fields, [name]: text }, payload: { preimage: one.preimage } })
        expect(verdict(changed, one.stored, one.key)).toBe('unknown-challenge')
        const guessed = presented({ challenge: one.fields, payload: { preimage: guess } })
        expect(verdict(guessed, one.stored, one.key)).toBe('invalid-preimage')
      }),
      { numRuns: 300 },
    )
  })

  test('MPP 29: no string makes it fail in any other way than by refusing', () => {
    const jsons = fc.json({ maxDepth: 4 }).map(withScheme)
    const shaped = fc
      .record({ challenge: fc.anything({ maxDepth: 2 }), payload: fc.anything({ maxDepth: 2 }) }, { requiredKeys: [] })
      .map((value) => withScheme(JSON.stringify(value, (_name, member) => (typeof member === 'bigint' ? `${member}` : member))))
    const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => withScheme(Buffer.from(array)))
    const texts = fc.string({ unit: 'binary', maxLength: 200 })
    const tokens = fc.stringMatching(/^Payment {1,3}[A-Za-z0-9_-]{0,50}={0,3}$/)
    fc.assert(
      fc.property(fc.oneof(texts, tokens, bytes, jsons, shaped), (text) => {
        expect(verdict(text)).toBe('malformed-credential')
      }),
      { numRuns: 3_000 },
    )
  })

  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

  /** Another decoder, made in another way: bit by bit, with the URL functions’ idea of UTF-8. Undefined where it means nothing. */
  function meaning(header: string): unknown {
    const [scheme = '', token = '', ...more] = header.split(' ')
    if (scheme.toLowerCase() !== 'payment' || more.length > 0) return undefined
    let escapes = ''
    let [bits, held] = [0, 0]
    for (const character of token.replace(/==?$/, '')) {
      const value = ALPHABET.indexOf(character)
      if (value < 0) return undefined
      bits = ((bits << 6) | value) & 0xffff
      held += 6
      if (held < 8) continue
      held -= 8
      const byte = (bits >> held) & 0xff
      escapes += byte < 0x80 && byte !== 0x25 ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`
    }
    try {
      const { challenge, payload } = JSON.parse(decodeURIComponent(escapes))
      if ('opaque' in challenge || 'digest' in challenge) return undefined
      return { fields: FIELDS.map((name) => challenge[name]), preimage: payload.preimage }
    } catch {
      return undefined
    }
  }

  test.each(paidVectors)(
    'MPP 59: $name: with any bit of it flipped it is accepted if, and only if, it still means the same',
    (vector) => {
      const [text, stored, under] = [vector.credential_header, issuedOf(vector), Buffer.from(vector.server_key)]
      const meant = meaning(text)
      expect(meant).toMatchObject({ preimage: vector.stored_challenge.preimage })
      const wrong: string[] = []
      let accepted = 0
      for (let at = 0; at < text.length; at++) {
        for (let bit = 0; bit < 8; bit++) {
          const flipped = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << bit)) + text.slice(at + 1)
          const right = verdict(flipped, stored, under) === 'right'
          if (right !== isDeepStrictEqual(meaning(flipped), meant)) wrong.push(`bit ${bit} of character ${at}`)
          if (right) accepted++
        }
      }
      expect(wrong).toEqual([])
      // The seven letters of the scheme may change their case: if not even these pass, nothing was looked at.
      expect(accepted).toBeGreaterThanOrEqual(7)
      expect(accepted).toBeLessThan(text.length)
    },
  )
})
