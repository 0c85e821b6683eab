import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyBytes, base64, fresh, good, judged, NOW, status, withMore } from './support/l402.ts'
import { A, attenuated, END } from './support/l402-by-hand.ts'

describe('accepted', () => {
  /** Padded, and with both characters that differ between the alphabets. */
  const odd = attenuated(fresh, 'x=>>>???')
  const [standard, urlSafe] = [odd.toString('base64'), odd.toString('base64url')]
  test('the credential of the base64 rows below has padding and both characters', () => {
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
    ['L402 27: an earlier expiry that is still in the future', [`boltyard_valid_until=${NOW + 1}`]],
    ['L402 27: the same expiry again', [`boltyard_valid_until=${END}`]],
    [
      'L402 27: earlier and earlier',
      [`boltyard_valid_until=${NOW + 9}`, `boltyard_valid_until=${NOW + 9}`, `boltyard_valid_until=${NOW + 2}`],
    ],
    ['L402 27: a time with leading zeros', [`boltyard_valid_until=00000${NOW + 1}`]],
    ['L402 28: the same services again', ['services=boltyard:0']],
    ['L402 28: another tier, which is not compared', ['services=boltyard:255']],
    ['L402 28: the same name twice', ['services=boltyard:0,boltyard:1']],
    ['L402 29: an unknown condition', ['ip=203.0.113.9']],
    ['L402 29: the time of another service', ['other_valid_until=1']],
    ['L402 29: conditions with a space are unknown', ['services = other:0', 'boltyard_valid_until = 1', ' payment_id=x']],
    ['L402 29: conditions in another case are unknown', ['Services=other:0', 'PAYMENT_ID=x']],
    [
      'L402 29: conditions that other services use',
      ['boltyard_capabilities=read', 'RequestPath = /x', 'ExpiresAt=1', 'expires_at=1', 'expiration=1'],
    ],
    ['L402 29: text without "="', ['services', 'payment_id', 'boltyard_valid_until', 'hello']],
    ['L402 29: a known condition with a letter appended, without "="', ['servicesx', 'payment_idx', 'boltyard_valid_untilx']],
    ['L402 29: an empty caveat, or an empty name', ['', '=', '=services=other:0']],
    ['L402 29: a known condition that is not at the start', ['x=services=other:0', 'x payment_id=other']],
    ['L402 29: bytes that are not text', [Buffer.of(0xff, 0xfe), Buffer.of(0xff, 0x3d, 0xff), Buffer.alloc(40)]],
    ['L402 29: the payment’s own id again', ['payment_id=pay_example_1']],
  ])('%s', (_, caveats) => {
    expect(withMore(caveats)).toBe(200)
  })

  test('L402 28: narrowed from two services to ours', () => {
    expect(judged(['services=other:0,boltyard:0'])).toBe(200)
    expect(judged(['services=other:0,boltyard:0', 'services=boltyard:3'])).toBe(200)
    expect(judged(['services=other:0,boltyard:0', 'services=boltyard:0,other:0', 'services=boltyard:0'])).toBe(200)
  })

  test('L402 29: unknown caveats do not change the result', () => {
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

  test('the caller names the service, and the time caveat uses that name', () => {
    expect(judged(['services=gateway:0', `gateway_valid_until=${NOW}`, 'boltyard_valid_until=x'], { service: 'gateway' })).toBe(
      410,
    )
    expect(judged(['services=gateway:0', `gateway_valid_until=${NOW + 1}`], { service: 'gateway' })).toBe(200)
    expect(judged(['services=gateway:0', `gateway_valid_until=${NOW + 1}`])).toBe(400)
  })
})
