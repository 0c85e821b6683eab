import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const server = process.env.PUBLIC_URL ?? 'http://127.0.0.1:8402'

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  plugins: [react()],
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
    proxy: { '/dashboard/api': { target: server, changeOrigin: true, headers: { origin: new URL(server).origin } } },
  },
})
