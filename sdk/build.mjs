import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The same files twice, for `import` and for `require`, each with its types beside it. Not bundled: the classes of two entries must be
 * the same ones, or `instanceof` fails across them.
 */
const here = dirname(fileURLToPath(import.meta.url))
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')

rmSync(join(here, 'dist'), { recursive: true, force: true })
for (const [name, module, type] of [
  ['esm', 'esnext', 'module'],
  ['cjs', 'commonjs', 'commonjs'],
]) {
  const outDir = join(here, 'dist', name)
  execFileSync(process.execPath, [tsc, '-p', join(here, 'tsconfig.build.json'), '--module', module, '--outDir', outDir], {
    stdio: 'inherit',
  })
  mkdirSync(outDir, { recursive: true })
  writeFileSync(join(outDir, 'package.json'), `${JSON.stringify({ type, sideEffects: false })}\n`)
}
