import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const server = process.env.PUBLIC_URL ?? 'http://127.0.0.1:8402'

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  plugins: [react()],
  build: {
    target: 'es2022',
    // The Content-Security-Policy has no data: for fonts and scripts; whatever is small enough to be inlined would be refused.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Mantine, React and the router are one chunk, 155 kB when compressed; what counts is measured there.
    chunkSizeWarningLimit: 700,
  },
  server: {
    // The server takes changes from its own origin only, and the page of `vite dev` has another.
    proxy: { '/dashboard/api': { target: server, changeOrigin: true, headers: { origin: new URL(server).origin } } },
  },
})
