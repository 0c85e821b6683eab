import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const server = process.env.PUBLIC_URL ?? 'http://127.0.0.1:8402'

/** A smaller file fits into one packet even without compression. */
const WORTH_COMPRESSING_BYTES = 1_000
/** The highest quality makes files 2 % smaller and takes a second longer, at every `npm start`. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } }

/** The server sends `x.br` or `x.gz` in place of `x` to browsers that accept it. */
function precompress(): Plugin {
  return {
    name: 'precompress',
    apply: 'build',
    enforce: 'post',
    // Vite fills in its preload list in the same hook. Without `order`, this runs first and compresses a script that cannot run.
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        for (const [fileName, output] of Object.entries(bundle)) {
          const content = Buffer.from(output.type === 'chunk' ? output.code : output.source)
          if (content.length < WORTH_COMPRESSING_BYTES || !/\.(js|css|html|svg)$/.test(fileName)) continue
          this.emitFile({ type: 'asset', fileName: `${fileName}.br`, source: brotliCompressSync(content, BROTLI) })
          this.emitFile({ type: 'asset', fileName: `${fileName}.gz`, source: gzipSync(content, { level: 9 }) })
        }
      },
    },
  }
}

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  plugins: [react(), precompress()],
  build: {
    target: 'es2022',
    // The Content-Security-Policy does not allow data: URLs for fonts and scripts, so nothing may be inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Mantine, React and the router share one chunk of 155 kB compressed; the warning looks at uncompressed sizes.
    chunkSizeWarningLimit: 700,
  },
  server: {
    // The server accepts changes only from its own origin, and `vite dev` serves the page from another one.
    proxy: {
      '^/(dashboard/api|operator/v1)/': { target: server, changeOrigin: true, headers: { origin: new URL(server).origin } },
    },
  },
})
