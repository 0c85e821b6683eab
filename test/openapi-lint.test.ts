import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

test('D11: openapi.json has no error and no warning by redocly’s recommended rules', () => {
  const program = `${root}/node_modules/@redocly/cli/bin/cli.js`
  const args = [program, 'lint', `${root}/docs/openapi.json`, '--extends=recommended', '--format=json']
  // Otherwise redocly sends telemetry and checks for a newer version.
  const env = { PATH: process.env.PATH, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const output = execFileSync(process.execPath, args, { cwd: root, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  expect(JSON.parse(output.slice(output.indexOf('{'))).totals).toMatchObject({ errors: 0, warnings: 0 })
})
