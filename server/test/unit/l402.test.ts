import * as crypto from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { issueL402, judgeL402, L402_SERVICE } from '../../src/gateway/l402.ts'
import { Problem } from '../../src/problems.ts'
import {
  A,
  attenuated,
  B,
  credential,
  END,
  FRESH,
  hex,
  identifier,
  macaroon,
  meaningOf,
  meaningOfMacaroon,
  vectors,
  written,
} from '../support/l402-by-hand.ts'

const computed = vi.hoisted(() => ({ signatures: 0 }))
vi.mock('node:crypto', async (actual) => {
  const real = await actual<typeof crypto>()
  const createHmac: typeof real.createHmac = (...parameters) => {
    computed.signatures++
    return real.createHmac(...parameters)
  }
  return { ...real, createHmac }
})

const INVOICE = 'lnbcrt420n1pj9nrzypp5vectorsonly'
const NOW = 1_800_000_000
const fresh = macaroon(FRESH)
const good = credential(fresh)
const base64 = fresh.toString('base64')

type Sent = { payment?: typeof A; now?: number; service?: string }

/** Anything but a Problem that is thrown is a 500, and fails the test that met it. */
function problem(text: string, { payment = A, now = NOW, service = L402_SERVICE }: Sent = {}): Problem | undefined {
  const { rootKey, paymentId, paymentHash, tokenId } = payment
  try {
    judgeL402(text, { paymentId, paymentHash, tokenId }, rootKey, now, service)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

function answer(text: string, sent?: Sent): { status: number; message: string } {
  const { status, code, message } = problem(text, sent) ?? { status: 200, code: undefined, message: '' }
  if (code !== { 200: undefined, 400: 'invalid_payment_credential', 410: 'payment_expired' }[status])
    throw new Error(`${status} ${code}`)
  // Twelve characters in a row are no accident.
  for (let at = 0; at + 12 <= message.length; at++)
    if (text.includes(message.slice(at, at + 12))) throw new Error(`The message repeats what was sent: ${message}`)
  return { status, message }
}
const status = (text: string, sent?: Sent): number => answer(text, sent).status
const judged = (caveats: (string | Buffer)[], sent?: Sent): number => status(credential(macaroon(caveats)), sent)
const withMore = (caveats: (string | Buffer)[], sent?: Sent): number => status(credential(attenuated(fresh, ...caveats)), sent)

const terms = { paymentId: A.paymentId, paymentHash: A.paymentHash, tokenId: A.tokenId, validUntilSeconds: END, invoice: INVOICE }
const macaroonIn = (challenge: string): string => /macaroon="([^"]*)"/.exec(challenge)?.[1] ?? ''

const anyBytes = (constraints: fc.IntArrayConstraints) => fc.uint8Array(constraints).map((array) => Buffer.from(array))
const words = anyBytes({ minLength: 32, maxLength: 32 })
const anyTerms = fc.record({
  paymentId: fc.stringMatching(/^pay_[0-9a-z]{20}$/),
  paymentHash: words,
  tokenId: words,
  validUntilSeconds: fc.integer({ min: 0, max: 999_999_999_999_999 }),
  invoice: fc.stringMatching(/^ln[a-z0-9]{1,300}$/),
})

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

  test('L402: the vectors hold all three answers', () => {
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
    'L402 2: what is not an invoice does not get into a header: %j',
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
    'L402 11: a time that would be refused when it comes back is not sold: %d',
    (validUntilSeconds) => {
      expect(() => issueL402(A.rootKey, { ...terms, validUntilSeconds })).toThrow(RangeError)
    },
  )

  test('L402 5: a hash or token id of another length is not sold, though the sum be right', () => {
    const both = Buffer.concat([A.paymentHash, A.tokenId])
    for (const at of [0, 31, 33, 64])
      expect(() => issueL402(A.rootKey, { ...terms, paymentHash: both.subarray(0, at), tokenId: both.subarray(at) })).toThrow(
        RangeError,
      )
  })

  test('L402 8: another token id is another macaroon with another signature', () => {
    const [one, other] = [A.tokenId, B.tokenId].map((tokenId) => macaroonIn(issueL402(A.rootKey, { ...terms, tokenId })))
    expect(one?.slice(-42)).not.toBe(other?.slice(-42))
  })

  test.each([
    ['Aperture', /(LSAT|L402) macaroon="(.*?)", invoice="(.*?)"/],
    ['lnget', /(LSAT|L402)\s+macaroon="([^"]+)",\s*invoice="([^"]+)"/i],
  ])('L402 17: %s finds scheme, macaroon and invoice in it', (_, pattern) => {
    expect(pattern.exec(issueL402(A.rootKey, terms))?.slice(1)).toEqual(['L402', base64, INVOICE])
  })

  test('L402 19: what was issued is accepted with its preimage, until its time is over', () => {
    fc.assert(
      fc.property(words, words, anyTerms, (rootKey, preimage, sold) => {
        const payment = { ...sold, rootKey, preimage: '', paymentHash: crypto.createHash('sha256').update(preimage).digest() }
        const challenge = issueL402(rootKey, { ...sold, paymentHash: payment.paymentHash })
        const text = `L402 ${macaroonIn(challenge)}:${preimage.toString('hex')}`
        expect(status(text, { payment, now: sold.validUntilSeconds - 1 })).toBe(200)
        expect(status(text, { payment, now: sold.validUntilSeconds })).toBe(410)
      }),
    )
  })
})

describe('accepted', () => {
  /** Padded, and with both characters in which the alphabets differ. */
  const odd = attenuated(fresh, 'x=>>>???')
  const [standard, urlSafe] = [odd.toString('base64'), odd.toString('base64url')]
  test('the table below tests what it says', () => {
    expect(standard).toMatch(/=$/)
    expect(standard).toMatch(/\+/)
    expect(standard).toMatch(/\//)
    expect(urlSafe).not.toMatch(/[+/=]/)
  })

  test.each([
    ['L402 19: as issued', good],
    ['L402 20: LSAT', good.replace('L402', 'LSAT')],
    ['L402 21: lower case', good.replace('L402', 'l402')],
    ['L402 21: mixed case', good.replace('L402', 'lSaT')],
    ['L402 22: more spaces after the scheme', good.replace(' ', '     ')],
    ['L402 22: spaces and tabs around it', `\t ${good} \t `],
    ['L402 23: preimage in upper case', `L402 ${base64}:${A.preimage.toUpperCase()}`],
    ['L402 23: preimage in mixed case', `L402 ${base64}:${A.preimage.replaceAll('a', 'A')}`],
    ['L402 24: standard base64', `L402 ${standard}:${A.preimage}`],
    ['L402 24: standard base64 without padding', `L402 ${standard.replaceAll('=', '')}:${A.preimage}`],
    ['L402 24: URL-safe base64 without padding', `L402 ${urlSafe}:${A.preimage}`],
    ['L402 24: URL-safe base64 with padding', `L402 ${standard.replaceAll('+', '-').replaceAll('/', '_')}:${A.preimage}`],
    ['L402 24: both alphabets in one', `L402 ${standard.replaceAll('+', '-')}:${A.preimage}`],
  ])('%s', (_, text) => {
    expect(status(text)).toBe(200)
  })

  test.each<[string, (string | Buffer)[]]>([
    ['L402 27: an earlier end that is not yet', [`boltyard_valid_until=${NOW + 1}`]],
    ['L402 27: the same end again', [`boltyard_valid_until=${END}`]],
    [
      'L402 27: earlier and earlier',
      [`boltyard_valid_until=${NOW + 9}`, `boltyard_valid_until=${NOW + 9}`, `boltyard_valid_until=${NOW + 2}`],
    ],
    ['L402 27: leading zeros are digits too', [`boltyard_valid_until=00000${NOW + 1}`]],
    ['L402 28: services once more', ['services=boltyard:0']],
    ['L402 28: another tier, which is not compared', ['services=boltyard:255']],
    ['L402 28: the same name twice', ['services=boltyard:0,boltyard:1']],
    ['L402 29: a condition that we do not know', ['ip=203.0.113.9']],
    ['L402 29: the time of another service', ['other_valid_until=1']],
    ['L402 29: conditions with a space are others', ['services = other:0', 'boltyard_valid_until = 1', ' payment_id=x']],
    ['L402 29: conditions in another case are others', ['Services=other:0', 'PAYMENT_ID=x']],
    [
      'L402 29: what others use',
      ['boltyard_capabilities=read', 'RequestPath = /x', 'ExpiresAt=1', 'expires_at=1', 'expiration=1'],
    ],
    ['L402 29: text without "="', ['services', 'payment_id', 'boltyard_valid_until', 'hello']],
    ['L402 29: a known condition and a letter, without "="', ['servicesx', 'payment_idx', 'boltyard_valid_untilx']],
    ['L402 29: nothing at all', ['', '=', '=services=other:0']],
    ['L402 29: a known condition further on is not one', ['x=services=other:0', 'x payment_id=other']],
    ['L402 29: bytes that are no text', [Buffer.of(0xff, 0xfe), Buffer.of(0xff, 0x3d, 0xff), Buffer.alloc(40)]],
    ['L402 29: the payment’s own id once more', ['payment_id=pay_example_1']],
  ])('%s', (_, caveats) => {
    expect(withMore(caveats)).toBe(200)
  })

  test('L402 28: of two services one is left, and it is ours', () => {
    expect(judged(['services=other:0,boltyard:0'])).toBe(200)
    expect(judged(['services=other:0,boltyard:0', 'services=boltyard:3'])).toBe(200)
    expect(judged(['services=other:0,boltyard:0', 'services=boltyard:0,other:0', 'services=boltyard:0'])).toBe(200)
  })

  test('L402 29: no caveat that we do not know changes the answer', () => {
    const unknown = anyBytes({ maxLength: 50 }).filter(
      (text) => !/^(services|boltyard_valid_until|payment_id)=/.test(text.toString('latin1')),
    )
    fc.assert(
      fc.property(fc.array(unknown, { maxLength: 20 }), (caveats) => {
        expect(withMore(caveats)).toBe(200)
        expect(withMore(caveats, { now: END })).toBe(410)
      }),
    )
  })

  test('the service is the caller’s to name, and the time goes by its name', () => {
    expect(judged(['services=gateway:0', `gateway_valid_until=${NOW}`, 'boltyard_valid_until=x'], { service: 'gateway' })).toBe(
      410,
    )
    expect(judged(['services=gateway:0', `gateway_valid_until=${NOW + 1}`], { service: 'gateway' })).toBe(200)
    expect(judged(['services=gateway:0', `gateway_valid_until=${NOW + 1}`])).toBe(400)
  })
})

describe('refused: how it is written', () => {
  const challenge = issueL402(A.rootKey, terms)
  const { preimage } = A
  const changed = (at: number, character: string) => `L402 ${base64.slice(0, at)}${character}${base64.slice(at + 1)}:${preimage}`

  test.each([
    ['L402 33: nothing', ''],
    ['L402 33: spaces', '   '],
    ['L402 34: no scheme', `${base64}:${preimage}`],
    ['L402 34: only a space for a scheme', ` ${base64}:${preimage}`],
    ['L402 34: Bearer', good.replace('L402', 'Bearer')],
    ['L402 34: Payment', good.replace('L402', 'Payment')],
    ['L402 34: L403', good.replace('L402', 'L403')],
    ['L402 34: a scheme that ends like ours', `X${good}`],
    ['L402 34: a scheme that begins like ours', good.replace('L402', 'L402X')],
    ['L402 34: a letter that folds to ours', good.replace('L402', 'L\u017fAT')],
    ['L402 34: no space after the scheme', good.replace(' ', '')],
    ['L402 34: a tab after the scheme', good.replace(' ', '\t')],
    ['L402 34: header name and all', `Authorization: ${good}`],
    ['L402 34: the challenge sent back', challenge],
    ['L402 34: the challenge with the preimage', `${challenge}:${preimage}`],
    ['L402 34: the macaroon in quotes', `L402 "${base64}":${preimage}`],
    ['L402 35: no colon', `L402 ${base64}${preimage}`],
    ['L402 35: no colon and no preimage', `L402 ${base64}`],
    ['L402 35: two colons', `L402 ${base64}::${preimage}`],
    ['L402 35: no macaroon', `L402 :${preimage}`],
    ['L402 35: padding for a macaroon', `L402 ==:${preimage}`],
    ['L402 35: no preimage', `L402 ${base64}:`],
    ['L402 35: 62 digits', good.slice(0, -2)],
    ['L402 35: 63 digits', good.slice(0, -1)],
    ['L402 35: 65 digits', `${good}a`],
    ['L402 35: 66 digits', `${good}aa`],
    ['L402 35: not digits', `${good.slice(0, -1)}g`],
    ['L402 35: preimage in base64', `L402 ${base64}:${hex(preimage).toString('base64')}`],
    ['L402 35: preimage with 0x', `L402 ${base64}:0x${preimage}`],
    ['L402 35: text behind it', `${good} x`],
    ['L402 35: a parameter behind it', `${good}, realm="x"`],
    ['L402 35: twice', `${good} ${good}`],
    ['L402 35: a space before the colon', good.replace(':', ' :')],
    ['L402 35: a space behind the colon', good.replace(':', ': ')],
    ['L402 35: LF at the end', `${good}\n`],
    ['L402 35: CR LF at the end', `${good}\r\n`],
    ['L402 35: LF at the start', `\n${good}`],
    ['L402 35: a good one on the second line', `x\n${good}`],
    ['L402 35: CR LF inside', good.replace(':', '\r\n:')],
    ['L402 35: NUL at the end', `${good}\0`],
    ['L402 35: a no-break space around it', `\u00a0${good}`],
    ['L402 36: a character that Node’s decoder skips', changed(20, `*${base64[20]}`)],
    ['L402 36: a space that Node’s decoder skips', changed(20, ` ${base64[20]}`)],
    ['L402 36: padding in the middle', changed(20, `=${base64[20]}`)],
    ['L402 36: padding of three', `L402 ${base64}===:${preimage}`],
    ['L402 36: a character left over', `L402 ${base64}A:${preimage}`],
    ['L402 36: a character left over, padded', `L402 ${base64}A==:${preimage}`],
    ['L402 36: hex for base64', `L402 ${fresh.toString('hex')}:${preimage}`],
    ['L402 36: base64 of base64', `L402 ${Buffer.from(base64).toString('base64')}:${preimage}`],
    ['L402 36: cut short', credential(fresh.subarray(0, -1))],
    ['L402 36: a byte behind it', credential(Buffer.concat([fresh, Buffer.of(0)]))],
    ['L402 36: two macaroons in one', credential(Buffer.concat([fresh, fresh]))],
    ['L402 36: a list of macaroons', `L402 ${base64},${base64}:${preimage}`],
    [
      'L402 36: version 1',
      credential(Buffer.from('0018location boltyard\n0013identifier x\n002fsignature 0123456789abcdef0123456789abcdef\n')),
    ],
    [
      'L402 43: a third-party caveat',
      credential(
        Buffer.concat([fresh.subarray(0, -35), written([1, 'tp'], [2, 'x'], [4, 'v'], 'end').subarray(1), fresh.subarray(-35)]),
      ),
    ],
    ['L402 49: an MPP credential', 'Payment eyJjaGFsbGVuZ2UiOnsiaWQiOiJ4In19'],
  ])('%s', (_, text) => {
    expect(status(text)).toBe(400)
  })

  test('L402 36: what may be wrong with base64 means nothing: spare bits, and one padding character of two', () => {
    const [two] = [1, 2, 3]
      .map((more) => attenuated(fresh, 'x'.repeat(more)).toString('base64'))
      .filter((text) => text.endsWith('=='))
    if (!two) throw new Error('none of the three is padded twice')
    expect(status(`L402 ${two.slice(0, -1)}:${preimage}`)).toBe(200)
    const spare = String.fromCharCode(two.charCodeAt(two.length - 3) + 1)
    expect(Buffer.from(`${two.slice(0, -3)}${spare}==`, 'base64').equals(Buffer.from(two, 'base64'))).toBe(true)
    expect(status(`L402 ${two.slice(0, -3)}${spare}==:${preimage}`)).toBe(200)
  })
})

describe('refused: whose it is', () => {
  const tampered = (from: string, to: string) => Buffer.from(fresh.toString('latin1').replace(from, to), 'latin1')
  const signed = (id: Buffer) => macaroon(FRESH, { id })
  const [, ...rest] = identifier(A)
  const swapped = Buffer.from(fresh)
  B.paymentHash.copy(swapped, swapped.indexOf(A.paymentHash))
  const flipped = Buffer.from(fresh)
  flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1
  const [services, time, payment] = FRESH as [string, string, string]
  const oldSignature = (caveats: string[]) => Buffer.concat([macaroon(caveats).subarray(0, -32), fresh.subarray(-32)])

  const wrong: [string, string][] = [
    ['L402 37: another preimage', credential(fresh, B.preimage)],
    ['L402 37: a preimage of zeros', credential(fresh, '0'.repeat(64))],
    ['L402 37: the payment hash for a preimage', credential(fresh, A.paymentHash.toString('hex'))],
    ['L402 38: one bit of the signature', credential(flipped)],
    ['L402 39: a later time under the old signature', credential(tampered('1800086400', '1900086400'))],
    ['L402 39: a caveat left out', credential(oldSignature([services, payment]))],
    ['L402 39: the last caveat left out', credential(oldSignature([services, time]))],
    ['L402 39: all caveats left out', credential(oldSignature([]))],
    ['L402 39: caveats in another order', credential(oldSignature([time, services, payment]))],
    ['L402 39: a caveat more', credential(oldSignature([...FRESH, 'x=y']))],
    ['L402 40: the hash of another payment, with its preimage', credential(swapped, B.preimage)],
    [
      'L402 41: the credential of another payment',
      credential(macaroon(['services=boltyard:0'], { rootKey: B.rootKey, id: identifier(B) }), B.preimage),
    ],
    ['L402 42: another root key', credential(macaroon(FRESH, { rootKey: B.rootKey }))],
    ['L402 42: identifier of version 1', credential(signed(Buffer.from([0, 1, ...rest.slice(1)])))],
    ['L402 42: identifier of version 256', credential(signed(Buffer.from([1, ...rest])))],
    ['L402 42: identifier of 65 bytes', credential(signed(identifier(A).subarray(0, -1)))],
    ['L402 42: identifier of 67 bytes', credential(signed(Buffer.concat([identifier(A), Buffer.of(0)])))],
    ['L402 42: identifier of nothing', credential(signed(Buffer.alloc(0)))],
    ['L402 42: a token id that was never issued', credential(signed(identifier({ ...A, tokenId: B.tokenId })))],
    [
      'L402 42: the other hash, signed with our key',
      credential(signed(identifier({ ...A, paymentHash: B.paymentHash })), B.preimage),
    ],
  ]
  test.each(wrong)('%s', (_, text) => {
    expect(status(text)).toBe(400)
  })

  test('L402 58: identifier, preimage and signature fail with one and the same text', () => {
    expect(new Set(wrong.map(([, text]) => answer(text).message)).size).toBe(1)
    expect(answer(credential(fresh, B.preimage)).message).toBe('The credential is not one of this payment.')
  })

  test('L402 41: the same credential is good where it belongs', () => {
    const own = credential(
      macaroon(['services=boltyard:0', 'payment_id=pay_example_2'], { rootKey: B.rootKey, id: identifier(B) }),
      B.preimage,
    )
    expect(status(own, { payment: B })).toBe(200)
    expect(status(own)).toBe(400)
    expect(status(good, { payment: B })).toBe(400)
  })
})

describe('refused: what its caveats say', () => {
  const more = `boltyard_valid_until=`
  test.each<[string, (string | Buffer)[]]>([
    ['L402 44: a later time', [`${more}${END + 1}`]],
    ['L402 44: later than the last, though not than the first', [`${more}${NOW + 5}`, `${more}${NOW + 6}`]],
    ['L402 44: later once, and earlier again', [`${more}${END + 1}`, `${more}${NOW + 5}`]],
    ['L402 44: a service more', ['services=boltyard:0,other:0']],
    ['L402 44: a service more once, and taken back', ['services=boltyard:0,other:0', 'services=boltyard:0']],
    ['L402 45: another service', ['services=other:0']],
    ['L402 45: ours in another case', ['services=Boltyard:0']],
    ['L402 46: another payment', ['payment_id=pay_example_2']],
    ['L402 46: no payment', ['payment_id=']],
    ['L402 46: another payment, and ours after it', ['payment_id=pay_example_2', 'payment_id=pay_example_1']],
    ['L402 46: the id and more; the first "=" divides', ['payment_id=pay_example_1=']],
    ['L402 46: the id and a bad byte', [Buffer.from('payment_id=pay_example_1\xff', 'latin1')]],
  ])('%s', (_, caveats) => {
    expect(withMore(caveats)).toBe(400)
  })

  const times = [
    '',
    'soon',
    '-1',
    '+1900000000',
    '1.9e9',
    '1e9',
    '0x7fffffff',
    '1_800_000_001',
    '1800000001.0',
    ' 1800000001',
    '1800000001 ',
  ]
  const longTimes = [
    '1800000001\n',
    '１８００００００',
    '0000001800000001',
    '0'.repeat(3_000),
    '9'.repeat(3_000),
    '1'.padEnd(400, '0'),
  ]
  test.each([...times, ...longTimes, 'Infinity', 'NaN'])('L402 44: not a time: %j', (value) => {
    expect(withMore([more + value])).toBe(400)
    expect(judged([more + value])).toBe(400)
    // Malformed is malformed, though a good one follow.
    expect(withMore([more + value, `${more}1`], { now: NOW })).toBe(400)
  })

  test('L402 44: a time with a bad byte is malformed, not unknown', () => {
    expect(withMore([Buffer.from(`${more}${NOW + 1}\xff`, 'latin1')])).toBe(400)
  })

  test('L402 44: the longest time that is one is compared exactly', () => {
    expect(judged([`${more}999999999999999`])).toBe(200)
    expect(judged([`${more}999999999999998`, `${more}999999999999999`])).toBe(400)
    expect(judged([`${more}9007199254740992`, `${more}9007199254740993`])).toBe(400)
    expect(judged([`${more}1000000000000000`])).toBe(400)
  })

  const lists = [
    '',
    'boltyard',
    'boltyard:',
    ':0',
    ':',
    'boltyard:256',
    'boltyard:-1',
    'boltyard:1.0',
    'boltyard:a',
    'boltyard:0x1',
    'boltyard: 0',
  ]
  const oddLists = [
    'boltyard:0,',
    ',boltyard:0',
    'boltyard:0,,boltyard:0',
    'boltyard:0:0',
    'boltyard:0\n',
    'boltyard:0;',
    'boltyard:0000',
    'boltyard:0,boltyard',
    'boltyard:0,:0',
    'boltyard:0,other:0:0',
  ]
  test.each([...lists, ...oddLists])('L402 44: not a list of services: %j', (value) => {
    expect(withMore([`services=${value}`])).toBe(400)
    expect(judged([`services=${value}`])).toBe(400)
    expect(judged([`services=${value}`, 'services=boltyard:0'])).toBe(400)
  })

  test('L402 44: names of different bad bytes are different names', () => {
    const one = Buffer.from('services=boltyard:0,\xff:0', 'latin1')
    const other = Buffer.from('services=boltyard:0,\xfe:0', 'latin1')
    expect(judged([one])).toBe(200)
    expect(judged([one, one])).toBe(200)
    expect(judged([one, other])).toBe(400)
  })

  test('L402 45: of two services the other one is left', () => {
    expect(judged(['services=boltyard:0,other:0', 'services=other:0'])).toBe(400)
    expect(judged(['services=boltyard:0,other:0', 'services=other:0', 'services=boltyard:0'])).toBe(400)
  })

  test('L402 27-29, 44-46, 53-55: any row of caveats gets the answer that the table of rules gives, read column by column', () => {
    const known = fc.constantFrom(
      ...[
        'boltyard:0',
        'boltyard:7,other:0',
        'other:0,boltyard:1',
        'other:0',
        'a:0,other:2,boltyard:255',
        'boltyard:256',
        '',
      ].map((list) => `services=${list}`),
      ...[NOW - 1, NOW, NOW + 1, NOW + 2, 'x', ''].map((time) => `boltyard_valid_until=${time}`),
      'payment_id=pay_example_1',
      'payment_id=pay_example_2',
      'ip=1',
      'services',
    )
    const often = fc.constantFrom(
      'services=boltyard:0,other:0',
      'services=boltyard:0',
      `${more}${NOW + 2}`,
      `${more}${NOW + 1}`,
      `${more}${NOW}`,
      'payment_id=pay_example_1',
    )
    const seen = new Set<number>()
    fc.assert(
      fc.property(fc.array(fc.oneof(often, often, often, known), { maxLength: 7 }), (caveats) => {
        const values = (condition: string) =>
          caveats.filter((text) => text.startsWith(`${condition}=`)).map((text) => text.slice(condition.length + 1))
        const pairs = <T>(all: T[]) => all.slice(1).map((after, index) => [all[index] as T, after] as const)
        const services = values('services').map((list) => list.split(',').map((one) => one.split(':')))
        const ends = values('boltyard_valid_until').map((text) => (text === '' ? Number.NaN : Number(text)))
        const right = [
          services.flat().every(([name, tier]) => name !== '' && tier !== undefined && Number(tier) < 256),
          pairs(services).every(([before, after]) => after.every(([name]) => before.some(([old]) => old === name))),
          services.at(-1)?.some(([name]) => name === 'boltyard') ?? true,
          ends.every((end) => !Number.isNaN(end)),
          pairs(ends).every(([before, after]) => after <= before),
          values('payment_id').every((id) => id === 'pay_example_1'),
        ].every(Boolean)
        const expected = !right ? 400 : ends.length > 0 && NOW >= (ends.at(-1) ?? 0) ? 410 : 200
        seen.add(expected)
        expect(judged(caveats)).toBe(expected)
      }),
      { numRuns: 1_500 },
    )
    expect([...seen].sort()).toEqual([200, 400, 410])
  })
})

describe('its time', () => {
  test('L402 53, 56: one second before the end 200, at the end 410, and ever after', () => {
    expect([END - 1, END, END + 1, END + 1e9].map((now) => status(good, { now }))).toEqual([200, 410, 410, 410])
    expect(answer(good, { now: END }).message).toBe('The time of the credential itself is over.')
  })

  test('L402 54: an attenuated copy lapses, the original does not', () => {
    const copy = credential(attenuated(fresh, `boltyard_valid_until=${NOW + 10}`))
    expect([NOW + 9, NOW + 10].map((now) => status(copy, { now }))).toEqual([200, 410])
    expect(status(good, { now: NOW + 10 })).toBe(200)
    expect(withMore(['boltyard_valid_until=0'])).toBe(410)
  })

  test.each<[string, string]>([
    ['another payment id', credential(attenuated(fresh, 'boltyard_valid_until=1', 'payment_id=x'))],
    ['another payment id before it', credential(attenuated(fresh, 'payment_id=x', 'boltyard_valid_until=1'))],
    ['another service', credential(attenuated(fresh, 'boltyard_valid_until=1', 'services=other:0'))],
    [
      'only another service is left',
      credential(macaroon(['services=boltyard:0,other:0', 'boltyard_valid_until=1', 'services=other:0'])),
    ],
    ['a malformed service', credential(attenuated(fresh, 'boltyard_valid_until=1', 'services='))],
    ['a later time behind it', credential(attenuated(fresh, 'boltyard_valid_until=1', 'boltyard_valid_until=2'))],
    ['a malformed time behind it', credential(attenuated(fresh, 'boltyard_valid_until=1', 'boltyard_valid_until=x'))],
    ['another preimage', credential(attenuated(fresh, 'boltyard_valid_until=1'), B.preimage)],
    ['another signature', credential(macaroon(['boltyard_valid_until=1'], { rootKey: B.rootKey }))],
    ['another identifier', credential(macaroon(['boltyard_valid_until=1'], { id: identifier(B) }))],
    ['bad writing', `${credential(attenuated(fresh, 'boltyard_valid_until=1'))}x`],
  ])('L402 55: lapsed, and wrong in another way too: 400: %s', (_, text) => {
    expect(status(text)).toBe(400)
  })
})

describe('whatever is sent', () => {
  test('L402 57: 16 KB of credential are read, one character more is not', () => {
    expect(status(good.padEnd(16 * 1024, ' '))).toBe(200)
    expect(status(good.padEnd(16 * 1024 + 1, ' '))).toBe(400)
    expect(status(good.padStart(16 * 1024 + 1, ' '))).toBe(400)
  })

  const hostile: [string, string][] = [
    ['32 KB of macaroon', credential(macaroon(['x'.repeat(24_000)]))],
    ['32 KB of spaces and a good one', good.padStart(32 * 1024, ' ')],
    ['10 MB', `L402 ${'A'.repeat(10 * 1024 * 1024)}:${A.preimage}`],
    ['a macaroon over 4 KB', credential(attenuated(fresh, 'x'.repeat(4_096 - fresh.length)))],
    ['1,000 caveats', credential(macaroon(Array(1_000).fill('')))],
    ['65 caveats', credential(macaroon(Array(65).fill('')))],
    ['a length of 10 MB', credential(Buffer.of(2, 2, 0x80, 0x80, 0x80, 0x05, 1, 2, 3))],
    ['a length without an end', credential(Buffer.concat([Buffer.of(2, 2), Buffer.alloc(4_000, 0xff)]))],
    ['16 KB of nearly a credential', `L402 ${'A'.repeat(16_000)}`],
    ['16 KB of spaces after the scheme', `L402${' '.repeat(16_000)}:`],
    ['16 KB of spaces before anything', ' '.repeat(16_384)],
    ['16 KB of spaces behind and a letter', `${good}${' '.repeat(16_000)}x`],
    ['16 KB of padding', `L402 A${'='.repeat(16_000)}:`],
    ['16 KB of colons', `L402 A${':'.repeat(16_000)}`],
    ['another identifier', credential(macaroon(FRESH, { id: identifier(B) }))],
    ['another preimage', credential(fresh, B.preimage)],
  ]
  test.each(hostile)('L402 57: refused quickly, in little memory and before any signature is computed: %s', (_, text) => {
    const before = computed.signatures
    const memory = process.memoryUsage()
    const started = performance.now()
    for (let times = 0; times < 100; times++) expect(problem(text)?.status).toBe(400)
    expect(performance.now() - started).toBeLessThan(2_000)
    const { arrayBuffers, heapUsed } = process.memoryUsage()
    expect(arrayBuffers - memory.arrayBuffers).toBeLessThan(50e6)
    expect(heapUsed - memory.heapUsed).toBeLessThan(100e6)
    expect(computed.signatures).toBe(before)
  })

  test('L402 57: 64 caveats that fill 4 KB are judged', () => {
    const room = Math.floor((4_096 - fresh.length) / 61) - 4
    expect(withMore(Array(61).fill('x'.repeat(room)))).toBe(200)
    expect(withMore(Array(62).fill('x'))).toBe(400)
  })

  test('L402 62: any string gets 400 and never anything else', () => {
    const characters = fc.string({ unit: 'binary', maxLength: 400 })
    const nearly = fc.tuple(
      fc.constantFrom('L402 ', 'LSAT  ', 'l402', ''),
      fc.base64String({ maxLength: 400 }),
      fc.constantFrom(':', ''),
      fc.constantFrom(A.preimage, B.preimage, ''),
    )
    const bytes = anyBytes({ maxLength: 300 }).map((some) => credential(Buffer.concat([Buffer.of(2), some])))
    fc.assert(
      fc.property(
        fc.oneof(
          characters,
          nearly.map((parts) => parts.join('')),
          bytes,
        ),
        (text) => {
          expect(status(text)).toBe(400)
        },
      ),
      { numRuns: 1_500 },
    )
  })

  test('L402 62: any caveats at all, genuinely signed, get 200, 400 or 410', () => {
    const condition = fc.constantFrom('services=', 'services=boltyard:0,', 'boltyard_valid_until=', 'payment_id=', '')
    const caveats = fc.array(
      fc.tuple(condition, anyBytes({ maxLength: 30 })).map(([text, value]) => Buffer.concat([Buffer.from(text), value])),
      { maxLength: 10 },
    )
    fc.assert(
      fc.property(caveats, (some) => {
        expect([200, 400, 410]).toContain(judged(some))
      }),
      { numRuns: 1_000 },
    )
  })

  const valid = [
    ...vectors.vectors.filter((vector) => vector.expect.valid),
    { n: 0, credential: good, service: 'boltyard', now: NOW },
  ]
  test.each(valid)(
    'L402 62: every bit of vector $n flipped: accepted if and only if it still means the same',
    ({ credential: text, service, now }) => {
      const meaning = meaningOf(text)
      expect(meaning).toBeDefined()
      let accepted = 0
      for (let bit = 0; bit < text.length * 8; bit++) {
        const flipped = `${text.slice(0, bit >> 3)}${String.fromCharCode(text.charCodeAt(bit >> 3) ^ (1 << (bit & 7)))}${text.slice((bit >> 3) + 1)}`
        const same = meaningOf(flipped) === meaning
        if ((problem(flipped, { service, now }) === undefined) !== same)
          throw new Error(`bit ${bit}: accepted ${!same}, means the same ${same}`)
        if (same) accepted++
      }
      // The letters of the scheme and of the preimage in their other case, and the location: the test saw both answers.
      expect(accepted).toBeGreaterThan(20)
    },
    120_000,
  )

  test.each(valid)(
    'L402 62: every bit of the macaroon of vector $n flipped: only the location may differ',
    ({ credential: text, service, now }) => {
      const bytes = Buffer.from(/ ([^:]+):/.exec(text)?.[1] ?? '', 'base64')
      const locationEnd = 3 + (bytes[2] ?? 0)
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = Buffer.from(bytes)
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        const inLocation = bit >> 3 >= 3 && bit >> 3 < locationEnd
        if ((problem(credential(flipped), { service, now }) === undefined) !== inLocation)
          throw new Error(`byte ${bit >> 3}, bit ${bit & 7}`)
      }
    },
    120_000,
  )
})
