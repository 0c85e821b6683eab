import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const room = fileURLToPath(new URL('..', import.meta.url))

export const SANDBOXD = `${room}dist/sandboxd.cjs`
/** The same source with its crash points live. */
export const SANDBOXD_WITH_CRASHPOINTS = `${room}dist/sandboxd.crashpoints.cjs`

export async function buildSandboxd(): Promise<void> {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: room, stdio: ['ignore', 'inherit', 'inherit'] })
  await build({
    entryPoints: [`${room}src/main.ts`],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    define: { CRASHPOINTS: 'true' },
    outfile: SANDBOXD_WITH_CRASHPOINTS,
  })
}
