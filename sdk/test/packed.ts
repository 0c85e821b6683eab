import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const isSource = (path: string): boolean => !/\/(dist|node_modules|test)$/.test(path)

/**
 * Runs `npm pack` in an unbuilt copy, as after `git clone && npm ci`. A copy, because the build empties `dist`, which other tests use at
 * the same time. The copy is created in `into`, next to the tarball. Returns the tarball's path.
 */
export function pack(room: 'sdk' | 'cli', into: string): string {
  const clone = join(into, `clone-${room}`)
  mkdirSync(clone)
  for (const name of ['package.json', 'tsconfig.base.json', 'protocol', 'sdk', 'cli'])
    cpSync(join(root, name), join(clone, name), { recursive: true, filter: isSource })
  for (const name of ['node_modules', 'protocol/node_modules']) symlinkSync(join(root, name), join(clone, name))
  const printed = execFileSync('npm', ['pack', '--json', '--pack-destination', into], {
    cwd: join(clone, room),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [{ filename }] = JSON.parse(printed.slice(printed.indexOf('[')))
  return join(into, filename)
}

export const LICENCE = join(root, 'LICENSE')
