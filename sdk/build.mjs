import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Builds the files twice, for `import` and for `require`, each with its types. Not bundled, because the entry points must share their
 * classes; otherwise `instanceof` fails between them.
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
  for (const file of readdirSync(outDir, { recursive: true })) if (file.endsWith('.d.ts')) nameBuiltFiles(join(outDir, file))
  writeFileSync(join(outDir, 'package.json'), `${JSON.stringify({ type, sideEffects: false })}\n`)
}

/** The compiler rewrites `./nodes.ts` in code but not in declarations, so TypeScript 4.9 would treat every type as `any`. */
function nameBuiltFiles(path) {
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, text.replace(/(from |import\()(['"])(\.\.?\/[^'"]+)\.ts\2/g, '$1$2$3.js$2'))
}
