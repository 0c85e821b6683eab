import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

export const SERVER = join(root, 'server/dist/main.js')
/** The same code as a module, for tests that run the service in their own process. */
export const SERVICE = join(root, 'server/dist/service.js')
/** The build with crash points. It is next to the real one, because the service finds the dashboard and its packages by relative path. */
export const CRASHING_SERVER = join(root, 'server/dist-crashpoints/main.js')
export const SANDBOXD = join(root, 'sandboxd/dist/sandboxd.cjs')
export const CRASHING_SANDBOXD = join(root, 'sandboxd/dist/sandboxd.crashpoints.cjs')
export const BOLTYARD = join(root, 'cli/dist/boltyard.js')

/** Shared by all bundles: a change in any of these makes every bundle stale. */
const SHARED = ['protocol', 'contract', 'package-lock.json']

/** Builds the published bundles, which the tests run. Each is built only if one of its sources is newer. */
export async function buildBundles(): Promise<void> {
  const sandboxd = ['sandboxd/src', 'sandboxd/package.json', ...SHARED]
  if (isStale(SANDBOXD, sandboxd)) npmBuild('sandboxd')
  if (isStale(CRASHING_SANDBOXD, sandboxd))
    await build({
      entryPoints: [join(root, 'sandboxd/src/main.ts')],
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'cjs',
      define: { CRASHPOINTS: 'true' },
      outfile: CRASHING_SANDBOXD,
    })
  const server = ['server/src', 'server/build.mjs', 'server/package.json', ...SHARED]
  if (isStale(SERVER, server)) npmBuild('server')
  if (isStale(CRASHING_SERVER, server))
    node('server', 'build.mjs', '--crashpoints', `--outdir=${join(root, 'server/dist-crashpoints')}`)
  if (isStale(BOLTYARD, ['cli/src', 'cli/package.json', 'sdk/src', ...SHARED])) npmBuild('cli')
  if (
    isStale('sdk/dist/cjs/package.json', ['sdk/src', 'sdk/build.mjs', 'sdk/tsconfig.build.json', 'sdk/package.json', ...SHARED])
  )
    npmBuild('sdk')
  const dashboard = ['src', 'public', 'index.html', 'vite.config.ts', 'package.json'].map((name) => `dashboard/${name}`)
  if (isStale('dashboard/dist/index.html', [...dashboard, ...SHARED])) npmBuild('dashboard')
  const look = ['dashboard/src/styles/theme.css', 'dashboard/src/fonts', 'dashboard/public']
  const texts = ['docs', 'sdk/README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'llms.txt']
  if (isStale('site/dist', ['site/src', 'site/client', 'site/build.ts', 'site/package.json', ...look, ...texts])) npmBuild('site')
}

function npmBuild(room: string): void {
  run(room, 'npm', ['run', '--silent', 'build'])
}

function node(room: string, ...args: string[]): void {
  run(room, process.execPath, args)
}

function run(room: string, command: string, args: string[]): void {
  // The test runner sets NODE_ENV to "test", with which the dashboard would get React's development build.
  const env = { ...process.env, NODE_ENV: 'production' }
  execFileSync(command, args, { cwd: join(root, room), env, stdio: ['ignore', 'inherit', 'inherit'] })
}

function isStale(made: string, sources: string[]): boolean {
  const built = newest(made.startsWith('/') ? made : join(root, made))
  return sources.some((source) => newest(join(root, source)) >= built)
}

function newest(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0
  const names = readdirSync(path).filter((name) => name !== 'node_modules' && name !== 'dist' && name !== 'test')
  // The directory's own time counts too: it is the only trace of a deleted file.
  return Math.max(stat.mtimeMs, ...names.map((name) => newest(join(path, name))))
}
