import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

export type Problem = { ruleId: string; severity: 'error' | 'warn' }

/** What redocly's recommended rules find in an OpenAPI document. */
export function lint(file: string): Problem[] {
  const program = `${root}/node_modules/@redocly/cli/bin/cli.js`
  const args = [program, 'lint', file, '--extends=recommended', '--format=json']
  // Otherwise redocly sends telemetry and checks for a newer version.
  const env = { PATH: process.env.PATH, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const output = printed(() =>
    execFileSync(process.execPath, args, { cwd: root, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  return JSON.parse(output.slice(output.indexOf('{'))).problems
}

/** With errors, redocly prints the same and exits with 1. */
function printed(execute: () => string): string {
  try {
    return execute()
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout)
  }
}
