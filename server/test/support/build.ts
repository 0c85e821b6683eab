import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const room = fileURLToPath(new URL('../..', import.meta.url))

export const SERVER = `${room}dist/main.js`

export function buildServer(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: room, stdio: ['ignore', 'inherit', 'inherit'] })
}
