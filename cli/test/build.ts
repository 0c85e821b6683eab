import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const room = fileURLToPath(new URL('..', import.meta.url))

export const BOLTYARD = `${room}dist/boltyard.js`

export function buildCli(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: room, stdio: ['ignore', 'inherit', 'inherit'] })
}
