import { defineConfig } from 'vitest/config'

export default defineConfig({
  // As in the service that people run.
  define: { CRASHPOINTS: 'false' },
  // Examples import the SDK by its name, as everybody does; what they get is its source.
  resolve: { tsconfigPaths: true },
  test: {
    include: ['**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    globalSetup: ['testing/setup.ts'],
    // Every test starts real daemons and talks to them over sockets; two cores share them all. These only end what hangs.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // One more than there are cores on the machines that test it: a quarter of the time of two is waiting.
    maxWorkers: 3,
  },
})
