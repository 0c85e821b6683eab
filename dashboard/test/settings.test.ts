import { afterEach, expect, test } from 'vitest'
import { deviceOf } from '../src/text/device.ts'
import { sats, satsOfMsat } from '../src/text/format.ts'
import { localesOf } from '../src/text/locales.ts'
import { setUnit } from '../src/unit.ts'

afterEach(() => setUnit('sat'))
const plain = (text: string): string => text.replaceAll('\u2009', ' ').replaceAll('\u2212', '-')

test.each([
  [0, '0 sat', '0.00000000 BTC'],
  [1, '1 sat', '0.00000001 BTC'],
  [-123_456, '-123 456 sat', '-0.00123456 BTC'],
  [100_000_000, '100 000 000 sat', '1.00000000 BTC'],
  [99_999_999, '99 999 999 sat', '0.99999999 BTC'],
  // The largest amount of the API, and all bitcoin there will be.
  [9_007_199_254_740, '9 007 199 254 740 sat', '90 071.99254740 BTC'],
  [2_099_999_997_690_000, '2 099 999 997 690 000 sat', '20 999 999.97690000 BTC'],
])('dashboard: %i sat in both units, to the last digit', (amount, inSat, inBtc) => {
  expect(plain(sats(amount))).toBe(inSat)
  setUnit('btc')
  expect(plain(sats(amount))).toBe(inBtc)
})

test.each([
  [1000, '1 sat', '0.00000001 BTC'],
  [-625, '-0.625 sat', '-0.00000000625 BTC'],
  [1500, '1.5 sat', '0.00000001500 BTC'],
  [Number.MAX_SAFE_INTEGER, '9 007 199 254 740.991 sat', '90 071.99254740991 BTC'],
])('dashboard: %i msat are never rounded', (amount, inSat, inBtc) => {
  expect(plain(satsOfMsat(amount))).toBe(inSat)
  setUnit('btc')
  expect(plain(satsOfMsat(amount))).toBe(inBtc)
})

test('dashboard: dates follow the languages of the browser, whatever it sends', () => {
  const dateIn = (wanted: readonly string[] | undefined): string =>
    new Intl.DateTimeFormat(localesOf(wanted), { dateStyle: 'short', timeZone: 'UTC' }).format(Date.UTC(2026, 10, 17))
  expect(dateIn(['de-DE', 'en'])).toBe('17.11.26')
  expect(dateIn(['en-US'])).toBe('11/17/26')
  for (const odd of [undefined, [], ['C'], ['en-US@posix'], ['']]) expect(dateIn(odd)).toBe('17/11/2026')
})

test.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0', 'Firefox on Linux'],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
    'Chrome on Windows',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0',
    'Edge on Windows',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    'Safari on iPhone',
  ],
  [
    'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36',
    'Chrome on Android',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15',
    'Safari on Mac',
  ],
  ['curl/8.5.0', 'curl'],
  ['something else', 'Unknown device'],
  ['', 'Unknown device'],
  [null, 'Unknown device'],
])('dashboard: %s is “%s”', (userAgent, device) => {
  expect(deviceOf(userAgent)).toBe(device)
})
