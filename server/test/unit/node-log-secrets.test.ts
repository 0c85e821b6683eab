import { expect, test } from 'vitest'
import { withoutSecrets } from '../../src/nodes/logs/secrets-in-logs.ts'

const HEX = 'ab12'.repeat(16)
const SEED = 'abandon ability able about above absent absorb abstract absurd abuse access accident'

test.each([
  [`http-password=${HEX}`, HEX],
  [`preimage ${HEX} released`, HEX],
  [`PREIMAGE ${HEX.toUpperCase()}`, HEX.toUpperCase()],
  [`restored from ${SEED}`, SEED],
  [`restored from ${SEED.replaceAll(' ', ', ')}`, 'absurd'],
  ['authorization: Basic OnNlY3JldHBhc3N3b3Jk', 'OnNlY3JldHBhc3N3b3Jk'],
  ['sandbox-control-token=short-secret', 'short-secret'],
  ['{"password": "hunter2 with spaces"}', 'hunter2'],
  [`preimage_${HEX}`, HEX],
  [`x_${HEX} 0x${HEX}`, HEX],
  [`restored from\n${SEED.replaceAll(' ', '\n')}`, 'absurd'],
  [JSON.stringify(SEED.split(' ')), 'absurd'],
  [
    SEED.split(' ')
      .map((word, place) => `${place + 1}. ${word}`)
      .join(' '),
    'absurd',
  ],
  ['secret=abcdef', 'abcdef'],
  ['apiKey=abcdef', 'abcdef'],
  ['http_password_limited: abcdef', 'abcdef'],
  ['calling http://:hunter2@example.com:9740/x', 'hunter2'],
  [`Payment ${Buffer.from('{"challenge":1}').toString('base64url')}`, 'eyJj'],
  [`xprv${'9s21ZrQH143K3QTDL4LX'.repeat(5)}`, '9s21Zr'],
  [`\u001b[31mhttp-pass\u001b[0mword=${HEX}`, HEX],
])('security: a node’s log shows no secret: %s', (line, secret) => {
  expect(withoutSecrets(line)).not.toContain(secret)
  expect(withoutSecrets(line)).toContain('[hidden]')
})

test('the log stays useful: ordinary lines and their line breaks are unchanged', () => {
  const lines =
    '2026-11-18 01:02:03 connected to lightning peer\n2026-11-18 01:02:03 Payment received for 1000 sat, https://example.com/a/b\n2026-11-18 01:02:04 received 1200 sat\n\tat Main.kt:12'
  expect(withoutSecrets(lines)).toBe(lines)
})

test('the log names no path or port of the operator’s machine', () => {
  expect(withoutSecrets('datadir: /srv/boltyard/data/nodes/node_1/phoenix\nlistening on http://127.0.0.1:26702')).toBe(
    'datadir: [path]\nlistening on [address]',
  )
})

test.each(['a-', 'token', 'abc ', 'Payment ', '/a', '//', '1. abc ', 'pass=', 'http://', '\u001b[1'])(
  'the time it takes does not grow with the square of a line: %j',
  (part) => {
    const cpuMs = (length: number): number => {
      const before = process.cpuUsage()
      withoutSecrets(part.repeat(length / part.length))
      return process.cpuUsage(before).user / 1000
    }
    cpuMs(10_000)
    // An earlier regular expression took seven seconds for 64 kB.
    expect(cpuMs(64_000)).toBeLessThan(500)
  },
)
