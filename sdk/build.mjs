import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'

/**
 * Builds the files twice, for `import` and for `require`, each with its types. Not bundled, because the entry points must share their
 * classes; otherwise `instanceof` fails between them.
 */
const here = dirname(fileURLToPath(import.meta.url))
/** What we use of other packages, and the room that depends on them. Copied into the package, so that it has no dependencies. */
const COPIED = {
  '@scure/base': ['bech32', '../protocol'],
  '@noble/ciphers/chacha': ['chacha20', '.'],
  '@noble/curves/secp256k1.js': ['schnorr, secp256k1', '.'],
  '@noble/hashes/hkdf.js': ['expand, extract', '.'],
  '@noble/hashes/hmac.js': ['hmac', '.'],
  '@noble/hashes/sha2.js': ['sha256', '.'],
}
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
  for (const file of readdirSync(outDir, { recursive: true })) {
    if (file.endsWith('.d.ts')) nameBuiltFiles(join(outDir, file))
    if (file.endsWith('.js')) nameCopies(outDir, file)
  }
  for (const [from, [member, room]] of Object.entries(COPIED))
    buildSync({
      stdin: { contents: `export { ${member} } from '${from}'`, resolveDir: join(here, room) },
      bundle: true,
      // Not `node`, for which some packages import node:crypto.
      platform: 'browser',
      format: name,
      target: 'es2022',
      legalComments: 'inline',
      logLevel: 'warning',
      outfile: join(outDir, copyOf(from)),
    })
  writeFileSync(join(outDir, 'package.json'), `${JSON.stringify({ type, sideEffects: false })}\n`)
}

/** The compiler rewrites `./nodes.ts` in code but not in declarations, so TypeScript 4.9 would treat every type as `any`. */
function nameBuiltFiles(path) {
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, text.replace(/(from |import\()(['"])(\.\.?\/[^'"]+)\.ts\2/g, '$1$2$3.js$2'))
}

function copyOf(from) {
  return join('copied', `${from.replace(/^@|\.js$/g, '').replaceAll('/', '-')}.js`)
}

function nameCopies(outDir, file) {
  const text = readFileSync(join(outDir, file), 'utf8')
  const named = text.replace(/(from |require\()(['"])([^'".][^'"]*)\2/g, (whole, before, quote, from) =>
    from in COPIED ? `${before}${quote}${relative(dirname(file), copyOf(from)).replaceAll('\\', '/')}${quote}` : whole,
  )
  if (named !== text) writeFileSync(join(outDir, file), named)
}
