import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCli } from '../cli/test/build.ts'
import { buildSandboxd } from '../sandboxd/test/build.ts'
import { buildServer } from '../server/test/support/build.ts'

/** Tests run the very bundles that people run, so they are built before anything else. */
export default async function build(): Promise<void> {
  await buildSandboxd()
  buildServer()
  buildCli()
  buildWhenStale('sdk', 'dist/cjs/package.json', ['src', 'build.mjs', 'tsconfig.build.json', 'package.json'])
  buildWhenStale('dashboard', 'dist/index.html', [
    'src',
    'public',
    'index.html',
    'vite.config.ts',
    'package.json',
    '../package-lock.json',
  ])
}

/** Ten times as long as the others, so only when something of it is newer than what was built. */
function buildWhenStale(room: string, made: string, sources: string[]): void {
  const directory = fileURLToPath(new URL(`../${room}`, import.meta.url))
  const built = newest(join(directory, made))
  if (sources.every((name) => newest(join(directory, name)) < built)) return
  // The test runner calls this environment "test", and React then comes in the version for its developers, three times as large.
  const env = { ...process.env, NODE_ENV: 'production' }
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: directory, env, stdio: ['ignore', 'inherit', 'inherit'] })
}

function newest(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0
  // The directory's own time counts too: it is all that a deleted file leaves.
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))))
}
