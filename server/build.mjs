import { cpSync } from 'node:fs'
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

/**
 * The client of PostgreSQL (3.4.9, and its main branch) takes connections out of its queue without giving up their places, unless the
 * queue becomes empty, and searches all places for each statement: 60 µs each at first, 220 after 240,000 of them, and so on without
 * end. npm cannot patch a package, and a script after the installation may be forbidden: so the bundle gets a queue of ours.
 */
const queueThatForgets = {
  name: 'queue that forgets',
  setup(bundle) {
    const client = fileURLToPath(import.meta.resolve('postgres'))
    let isReplaced = false
    bundle.onResolve({ filter: /^postgres$/ }, () => ({ path: client }))
    bundle.onResolve({ filter: /^\.\/queue\.js$/ }, ({ importer }) => {
      if (dirname(importer) !== dirname(client)) return undefined
      isReplaced = true
      return { path: join(here, 'src', 'store', 'connection-queue.ts') }
    })
    bundle.onEnd(() => (isReplaced ? undefined : { errors: [{ text: 'postgres has no queue.js any more: see build.mjs' }] }))
  },
}

const options = {
  entryPoints: [join(here, 'src', 'main.ts')],
  logLevel: 'warning',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  packages: 'external',
  define: { CRASHPOINTS: String(values.crashpoints) },
  plugins: [queueThatForgets],
  outdir: values.outdir,
}

if (values.watch) await (await context(options)).watch()
else await build(options)
cpSync(join(here, 'src', 'store', 'migrations'), join(values.outdir, 'migrations'), { recursive: true })
