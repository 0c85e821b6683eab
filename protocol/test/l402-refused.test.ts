import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { answer, base64, fresh, good, issueL402, judged, NOW, status, terms, withMore } from './support/l402.ts'
import { A, attenuated, B, credential, END, FRESH, hex, identifier, macaroon, written } from './support/l402-by-hand.ts'

describe('refused: malformed credentials', () => {
  const challenge = issueL402(A.rootKey, terms)
  const { preimage } = A
  const changed = (at: number, character: string) => `L402 ${base64.slice(0, at)}${character}${base64.slice(at + 1)}:${preimage}`

  test.each([
    ['L402 33: nothing', ''],
    ['L402 33: spaces', '   '],
    ['L402 34: no scheme', `${base64}:${preimage}`],
    ['L402 34: a space instead of a scheme', ` ${base64}:${preimage}`],
    ['L402 34: Bearer', good.replace('L402', 'Bearer')],
    ['L402 34: Payment', good.replace('L402', 'Payment')],
    ['L402 34: L403', good.replace('L402', 'L403')],
    ['L402 34: a scheme that ends like ours', `X${good}`],
    ['L402 34: a scheme that begins like ours', good.replace('L402', 'L402X')],
    ['L402 34: a letter that becomes an S when case is ignored', good.replace('L402', 'L\u017fAT')],
    ['L402 34: no space after the scheme', good.replace(' ', '')],
    ['L402 34: a tab after the scheme', good.replace(' ', '\t')],
    ['L402 34: with the header name', `Authorization: ${good}`],
    ['L402 34: the challenge sent back', challenge],
    ['L402 34: the challenge with the preimage', `${challenge}:${preimage}`],
    ['L402 34: the macaroon in quotes', `L402 "${base64}":${preimage}`],
    ['L402 35: no colon', `L402 ${base64}${preimage}`],
    ['L402 35: no colon and no preimage', `L402 ${base64}`],
    ['L402 35: two colons', `L402 ${base64}::${preimage}`],
    ['L402 35: no macaroon', `L402 :${preimage}`],
    ['L402 35: padding instead of a macaroon', `L402 ==:${preimage}`],
    ['L402 35: no preimage', `L402 ${base64}:`],
    ['L402 35: 62 digits', good.slice(0, -2)],
    ['L402 35: 63 digits', good.slice(0, -1)],
    ['L402 35: 65 digits', `${good}a`],
    ['L402 35: 66 digits', `${good}aa`],
    ['L402 35: not digits', `${good.slice(0, -1)}g`],
    ['L402 35: preimage in base64', `L402 ${base64}:${hex(preimage).toString('base64')}`],
    ['L402 35: preimage with 0x', `L402 ${base64}:0x${preimage}`],
    ['L402 35: text after it', `${good} x`],
    ['L402 35: a parameter after it', `${good}, realm="x"`],
    ['L402 35: twice', `${good} ${good}`],
    ['L402 35: a space before the colon', good.replace(':', ' :')],
    ['L402 35: a space after the colon', good.replace(':', ': ')],
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
    ['L402 36: hex instead of base64', `L402 ${fresh.toString('hex')}:${preimage}`],
    ['L402 36: base64 of base64', `L402 ${Buffer.from(base64).toString('base64')}:${preimage}`],
    ['L402 36: cut short', credential(fresh.subarray(0, -1))],
    ['L402 36: a byte after it', credential(Buffer.concat([fresh, Buffer.of(0)]))],
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

  test('L402 36: spare bits, and one padding character instead of two, do not change what base64 means and are accepted', () => {
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

describe('refused: credentials of another payment', () => {
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
    ['L402 37: the payment hash instead of the preimage', credential(fresh, A.paymentHash.toString('hex'))],
    ['L402 38: one bit of the signature', credential(flipped)],
    ['L402 39: a later time under the old signature', credential(tampered('1800086400', '1900086400'))],
    ['L402 39: a caveat left out', credential(oldSignature([services, payment]))],
    ['L402 39: the last caveat left out', credential(oldSignature([services, time]))],
    ['L402 39: all caveats left out', credential(oldSignature([]))],
    ['L402 39: caveats in another order', credential(oldSignature([time, services, payment]))],
    ['L402 39: an additional caveat', credential(oldSignature([...FRESH, 'x=y']))],
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
    ['L402 42: an empty identifier', credential(signed(Buffer.alloc(0)))],
    ['L402 42: a token id that was never issued', credential(signed(identifier({ ...A, tokenId: B.tokenId })))],
    [
      'L402 42: the other hash, signed with our key',
      credential(signed(identifier({ ...A, paymentHash: B.paymentHash })), B.preimage),
    ],
  ]
  test.each(wrong)('%s', (_, text) => {
    expect(status(text)).toBe(400)
  })

  test('L402 58: a wrong identifier, preimage or signature fails with the same message', () => {
    expect(new Set(wrong.map(([, text]) => answer(text).message)).size).toBe(1)
    expect(answer(credential(fresh, B.preimage)).message).toBe('The credential does not belong to this payment.')
  })

  test('L402 41: the same credential is valid for its own payment', () => {
    const own = credential(
      macaroon(['services=boltyard:0', 'payment_id=pay_example_2'], { rootKey: B.rootKey, id: identifier(B) }),
      B.preimage,
    )
    expect(status(own, { payment: B })).toBe(200)
    expect(status(own)).toBe(400)
    expect(status(good, { payment: B })).toBe(400)
  })
})

describe('refused: caveats', () => {
  const more = `boltyard_valid_until=`
  test.each<[string, (string | Buffer)[]]>([
    ['L402 44: a later time', [`${more}${END + 1}`]],
    ['L402 44: later than the previous time, though not than the first', [`${more}${NOW + 5}`, `${more}${NOW + 6}`]],
    ['L402 44: a later time, followed by an earlier one', [`${more}${END + 1}`, `${more}${NOW + 5}`]],
    ['L402 44: an additional service', ['services=boltyard:0,other:0']],
    ['L402 44: an additional service, which is then removed again', ['services=boltyard:0,other:0', 'services=boltyard:0']],
    ['L402 45: another service', ['services=other:0']],
    ['L402 45: ours in another case', ['services=Boltyard:0']],
    ['L402 46: another payment', ['payment_id=pay_example_2']],
    ['L402 46: an empty payment id', ['payment_id=']],
    ['L402 46: another payment, and ours after it', ['payment_id=pay_example_2', 'payment_id=pay_example_1']],
    ['L402 46: the id with "=" appended, because only the first "=" is a separator', ['payment_id=pay_example_1=']],
    ['L402 46: the id with an invalid byte appended', [Buffer.from('payment_id=pay_example_1\xff', 'latin1')]],
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
    // A malformed caveat is refused even if a valid one follows.
    expect(withMore([more + value, `${more}1`], { now: NOW })).toBe(400)
  })

  test('L402 44: a time with an invalid byte is malformed, not unknown', () => {
    expect(withMore([Buffer.from(`${more}${NOW + 1}\xff`, 'latin1')])).toBe(400)
  })

  test('L402 44: the longest valid time is compared exactly', () => {
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

  test('L402 44: names with different invalid bytes are different names', () => {
    const one = Buffer.from('services=boltyard:0,\xff:0', 'latin1')
    const other = Buffer.from('services=boltyard:0,\xfe:0', 'latin1')
    expect(judged([one])).toBe(200)
    expect(judged([one, one])).toBe(200)
    expect(judged([one, other])).toBe(400)
  })

  test('L402 45: narrowed from two services to the other one', () => {
    expect(judged(['services=boltyard:0,other:0', 'services=other:0'])).toBe(400)
    expect(judged(['services=boltyard:0,other:0', 'services=other:0', 'services=boltyard:0'])).toBe(400)
  })

  test('L402 27-29, 44-46, 53-55: any list of caveats gets the same result from a second implementation of the rules', () => {
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

describe('expiry', () => {
  test('L402 53, 56: 200 one second before the expiry, 410 from the expiry on', () => {
    expect([END - 1, END, END + 1, END + 1e9].map((now) => status(good, { now }))).toEqual([200, 410, 410, 410])
    expect(answer(good, { now: END }).message).toBe('The credential has expired.')
  })

  test('L402 54: an attenuated copy expires, the original does not', () => {
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
    ['a later time after it', credential(attenuated(fresh, 'boltyard_valid_until=1', 'boltyard_valid_until=2'))],
    ['a malformed time after it', credential(attenuated(fresh, 'boltyard_valid_until=1', 'boltyard_valid_until=x'))],
    ['another preimage', credential(attenuated(fresh, 'boltyard_valid_until=1'), B.preimage)],
    ['another signature', credential(macaroon(['boltyard_valid_until=1'], { rootKey: B.rootKey }))],
    ['another identifier', credential(macaroon(['boltyard_valid_until=1'], { id: identifier(B) }))],
    ['a malformed credential', `${credential(attenuated(fresh, 'boltyard_valid_until=1'))}x`],
  ])('L402 55: expired and also otherwise invalid: 400: %s', (_, text) => {
    expect(status(text)).toBe(400)
  })
})
