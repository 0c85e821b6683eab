import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { cpuMsSince } from '../../testing/cpu-time.ts'
import { jcs } from '../src/jcs.ts'
import { Refusal } from '../src/refusal.ts'
import { mppRefusal } from './support/codecs.ts'
import {
  base64url,
  challenge,
  challengeId,
  credential,
  decoded,
  EXPIRES,
  echoed,
  FIELDS,
  fieldsOf,
  headerOf,
  issued,
  issueMpp,
  key,
  paymentHash,
  preimage,
  presented,
  requestOf,
  sha256,
  terms,
  verdict,
} from './support/mpp.ts'

describe('MPP: the credential', () => {
  const token = credential.slice('Payment '.length)
  const withToken = (text: string | Buffer) => `Payment ${base64url(text)}`
  const json = JSON.stringify({ challenge: echoed, payload: { preimage } })
  const payload = { preimage }

  test('MPP 24: a correct credential is accepted every time', () => {
    for (let times = 0; times < 3; times++) expect(verdict(credential)).toBe('right')
  })

  test.each([
    ['payment', 'lower case', `payment ${token}`],
    ['PAYMENT', 'upper case', `PAYMENT ${token}`],
    ['Payment', 'many spaces', `Payment     ${token}`],
    ['Payment', 'spaces and tabs around it', ` \t ${credential}\t \t`],
  ])('MPP 28: the scheme %s is accepted: %s', (_scheme, _why, text) => {
    expect(verdict(text)).toBe('right')
  })

  test.each([
    ['another scheme', `Bearer ${token}`],
    ['no scheme', token],
    ['a scheme without its token', 'Payment'],
    ['a scheme without its token, with a space', 'Payment '],
    ['nothing', ''],
    ['no space', `Payment${token}`],
    ['a tab instead of the space', `Payment\t${token}`],
    ['a colon', `Payment: ${token}`],
    ['the scheme twice', `Payment ${credential}`],
    ['a longer scheme', `XPayment ${token}`],
    ['a line end after it', `${credential}\n`],
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
    ['the content of an L402 credential, under our scheme', `Payment AgEEbHNhdA:${preimage}`],
  ])('MPP 51: %s is refused', (_what, text) => {
    expect(verdict(text)).toBe('malformed-credential')
  })

  test('MPP 29: padding is accepted, whether it is needed or not', () => {
    for (const source of ['', 'a', 'ab', 'abc']) {
      const bare = presented({ challenge: echoed, payload, source })
      expect(bare).not.toContain('=')
      for (const padding of ['', '=', '==']) expect(verdict(bare + padding)).toBe('right')
      expect(verdict(`${bare}===`)).toBe('malformed-credential')
    }
  })

  test('MPP 29: the other alphabet is refused, and so are characters that a lenient decoder skips', () => {
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
    ['text that is not JSON', 'hello'],
    ['nothing', ' '],
    ['JSON that was cut short', json.slice(0, -1)],
    ['JSON with text after it', `${json}x`],
    ['JSON after a byte order mark', `\ufeff${json}`],
    ['JSON that is nested too deeply', '['.repeat(12_000)],
    ['complete JSON that is nested too deeply', `{"a":${'['.repeat(6_000)}${']'.repeat(6_000)}}`],
  ])('MPP 29: %s in the token is refused', (_what, text) => {
    expect(verdict(withToken(text))).toBe('malformed-credential')
  })

  test.each([
    ['a stray byte', [0xff]],
    ['a byte cut off', [0xc3]],
    ['an overlong form', [0xc0, 0x80]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['above the last code point', [0xf4, 0x90, 0x80, 0x80]],
  ])(
    'MPP 29: invalid UTF-8 (%s) is refused even in an ignored field, and does not affect the next credential',
    (_what, wrong) => {
      const [before = '', after = ''] = JSON.stringify({ challenge: echoed, payload, source: 'HERE' }).split('HERE')
      const spoilt = Buffer.concat([Buffer.from(before), Buffer.from(wrong), Buffer.from(after)])
      expect(verdict(withToken(spoilt))).toBe('malformed-credential')
      expect(verdict(withToken(`${before}é😀${after}`))).toBe('right')
    },
  )

  test('MPP 30: keys may be in any order', () => {
    const backwards = Object.fromEntries(Object.entries(echoed).reverse())
    expect(verdict(presented({ payload, challenge: backwards }))).toBe('right')
    expect(verdict(withToken(jcs({ challenge: echoed, payload, source: 'did:x' })))).toBe('right')
    expect(verdict(withToken(JSON.stringify({ challenge: echoed, payload }, null, 2)))).toBe('right')
  })

  test('MPP 31: extra fields are ignored at every level, even those with a meaning in JavaScript', () => {
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
  ])('MPP 31: %s inside __proto__ does not count', (_what, text) => {
    expect(verdict(withToken(text))).toBe('malformed-credential')
  })

  test.each(['did:pkh:eip155:1:0xabc', '', 'x'.repeat(1_000), '"\\ 😀'])(
    'MPP 32: a source is accepted, whatever it contains (row %#)',
    (source) => {
      expect(verdict(presented({ challenge: echoed, payload, source }))).toBe('right')
    },
  )

  const wrongTypes = [null, true, 0, 1, [], ['x'], {}, { a: 'b' }]
  test.each(wrongTypes.map((value) => [JSON.stringify(value), value]))(
    'MPP 33: %s is refused as a challenge, payload, preimage or field',
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

  test('MPP 33: a list with one valid string is not that string', () => {
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
    ['0x instead of the first digits', `0x${preimage.slice(2)}`],
    ['a space before it', ` ${preimage}`],
    ['a line end after it', `${preimage}\n`],
    ['a letter that is not a hex digit', `${preimage.slice(1)}g`],
    ['nothing', ''],
  ])('MPP 34: a preimage with %s is refused', (_what, wrong) => {
    // The hash matches these digits, so only their spelling can be wrong.
    const stored = { ...issued, paymentHash: sha256(wrong) }
    expect(verdict(presented({ challenge: echoed, payload: { preimage: wrong } }), stored)).toBe('malformed-credential')
  })

  test('MPP 35: a preimage with another hash is refused, and the right one is accepted after it', () => {
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
      ['with a character after it', `${value}A`],
      ['with a space after it', `${value} `],
      ['with padding after it', `${value}=`],
      ['with a quote after it', `${value}"`],
      ['with the next parameter in it', `${value}", realm="x`],
      ['with a lone surrogate in it', `${value}\ud800`],
      ['empty', ''],
    ])('MPP 36: %s is refused', (_how, changed) => {
      expect(verdict(presented({ challenge: { ...echoed, [name]: changed }, payload }))).toBe('unknown-challenge')
    })

    test('MPP 36: a credential without it is refused', () => {
      const { [name]: _left, ...rest } = echoed
      expect(verdict(presented({ challenge: rest, payload }))).toBe(
        // Other issuers may omit the expiry, so such a credential is well formed but does not match our challenge.
        name === 'expires' ? 'unknown-challenge' : 'malformed-credential',
      )
    })

    test('MPP 36: a credential where it is swapped with any other field is refused', () => {
      for (const another of FIELDS.filter((one) => one !== name)) {
        const swapped = { ...echoed, [name]: echoed[another], [another]: echoed[name] }
        expect(verdict(presented({ challenge: swapped, payload }))).toBe('unknown-challenge')
      }
    })
  })

  test('MPP 36: the same time in a different notation is refused', () => {
    for (const expires of ['2026-09-21T14:18:20.000Z', '2026-09-21T14:18:20+00:00', '2026-09-21t14:18:20z']) {
      expect(verdict(presented({ challenge: { ...echoed, expires }, payload }))).toBe('unknown-challenge')
    }
  })

  test.each([['opaque'], ['digest']])('MPP 36: the field %s, which was never issued, is refused, even empty', (name) => {
    for (const value of ['', 'x', null, false, 0, [], {}]) {
      expect(verdict(presented({ challenge: { ...echoed, [name]: value }, payload }))).toBe('unknown-challenge')
    }
  })

  test('MPP 37: a valid credential of another payment is refused here and accepted there', () => {
    const other = { ...terms, paymentId: 'pay_other', invoice: 'lnbcrt21u1pother' }
    const otherChallenge = issueMpp(key, 'gateway.example.com', other, EXPIRES)
    const genuine = presented({ challenge: fieldsOf(otherChallenge), payload })
    expect(verdict(genuine, { ...issued, challenge: otherChallenge })).toBe('right')
    expect(verdict(genuine)).toBe('unknown-challenge')
    expect(verdict(credential, { ...issued, challenge: otherChallenge })).toBe('unknown-challenge')
  })

  test('MPP 38: a request with the same JSON in different bytes is refused', () => {
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

  test('MPP 39: a description outside the request may be echoed or omitted', () => {
    expect(verdict(presented({ challenge: { ...echoed, description: 'Something else' }, payload }))).toBe('right')
    expect(verdict(presented({ challenge: { ...echoed, description: 7 }, payload }))).toBe('right')
  })

  test('MPP 22: a credential that equals the stored challenge is refused if it was not issued with our key', () => {
    const foreign = issueMpp(Buffer.alloc(32, 7), 'gateway.example.com', terms, EXPIRES)
    const answer = presented({ challenge: fieldsOf(foreign), payload })
    expect(verdict(answer, { ...issued, challenge: foreign }, Buffer.alloc(32, 7))).toBe('right')
    expect(verdict(answer, { ...issued, challenge: foreign })).toBe('unknown-challenge')
  })

  test('MPP 22: an id written into a row with other values is refused', () => {
    const cheaper = fieldsOf(issueMpp(key, 'gateway.example.com', { ...terms, amountSat: 1 }, EXPIRES))
    const forged = { ...cheaper, id: echoed.id ?? '' }
    const stored = { ...issued, challenge: headerOf(forged), amountSat: 1 }
    expect(verdict(presented({ challenge: forged, payload }), stored)).toBe('unknown-challenge')
    const shorter = { ...echoed, id: 'short' }
    expect(verdict(presented({ challenge: shorter, payload }), { ...issued, challenge: headerOf(shorter) })).toBe(
      'unknown-challenge',
    )
  })

  test('MPP 36: our own challenge for a different amount or currency than the payment’s is refused', () => {
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

  test('MPP 54: a different length than the stored value is a mismatch, not an error', () => {
    for (const stored of ['', 'x', challenge.slice(1), `${challenge} `]) {
      expect(verdict(credential, { ...issued, challenge: stored })).toBe('unknown-challenge')
    }
    for (const hash of [Buffer.alloc(0), paymentHash.subarray(1), Buffer.concat([paymentHash, paymentHash])]) {
      expect(verdict(credential, { ...issued, paymentHash: hash })).toBe('invalid-preimage')
    }
  })

  test('MPP 42, 44: the clock is not used: long after expiry, a correct one is accepted and a wrong one refused', () => {
    const old = issueMpp(key, 'gateway.example.com', terms, 1_000_000_000)
    const stored = { ...issued, challenge: old }
    expect(verdict(presented({ challenge: fieldsOf(old), payload }), stored)).toBe('right')
    expect(verdict(presented({ challenge: fieldsOf(old), payload: { preimage: '00'.repeat(32) } }), stored)).toBe(
      'invalid-preimage',
    )
    expect(verdict(credential, stored)).toBe('unknown-challenge')
    expect(verdict('Payment garbage', stored)).toBe('malformed-credential')
  })

  test('MPP 52: 4 KB and up to exactly 16 KB are accepted; one character more is refused', () => {
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

  test('MPP 52: the longest garbage is refused quickly, even input that makes regular expressions backtrack', () => {
    const rubbish = [' ', '\t', 'Payment ', 'a', '=', 'Payment', 'Payment a ', ' \t'].map((piece) =>
      piece.repeat(16 * 1024).slice(0, 16 * 1024),
    )
    const tails = rubbish.flatMap((text) => [text, `Payment a${text}`.slice(0, 16 * 1024 - 1).concat('!')])
    const start = process.cpuUsage()
    for (const text of tails) expect(verdict(text)).toBe('malformed-credential')
    // A backtracking pattern needs a tenth of a second for each of these; ours takes well under a millisecond.
    expect(cpuMsSince(start)).toBeLessThan(1_000)
  })

  test('MPP 26: a refusal never contains any part of the credential, at any level', () => {
    const refused = [
      // The parser's own error would quote the beginning of this.
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
      const refusal = mppRefusal(text, issued, key)
      expect(refusal).toBeInstanceOf(Refusal)
      const shown = inspect(refusal, { depth: Infinity, showHidden: true }) + JSON.stringify(refusal)
      for (const secret of [preimage.slice(0, 8), preimage.slice(0, 8).toUpperCase(), '5b5b', echoed.id, text.slice(8, 40)]) {
        expect(shown).not.toContain(secret)
      }
    }
  })

  test('MPP 55: a refusal is a reason, a message and the problem’s URL', () => {
    expect(mppRefusal('', issued, key)).toEqual({
      reason: 'invalid',
      message: 'The credential is not "Payment" followed by one base64url token.',
      problem: 'https://paymentauth.org/problems/lightning/malformed-credential',
    })
  })
})
