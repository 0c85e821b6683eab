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
  [`\u001b[31mhttp-pass\u001b[0mword=${HEX}`, HEX],
])('security: a node’s log shows no secret: %s', (line, secret) => {
  expect(withoutSecrets(line)).not.toContain(secret)
  expect(withoutSecrets(line)).toContain('[hidden]')
})

test('the log stays useful: ordinary lines and their line breaks are unchanged', () => {
  const lines = '2026-11-18 01:02:03 connected to lightning peer\n2026-11-18 01:02:04 received 1200 sat\n\tat Main.kt:12'
  expect(withoutSecrets(lines)).toBe(lines)
})
