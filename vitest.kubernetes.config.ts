import { defineConfig } from 'vitest/config'

/** What needs a real control plane, or helm, which is built with it. */
export default defineConfig({
  define: { CRASHPOINTS: 'false' },
  test: {
    include: ['server/test/kubernetes/**/*.test.ts', 'test/deploy/chart.test.ts'],
    globalSetup: ['testing/setup.ts', 'testing/kubernetes/setup.ts'],
    // All files share one control plane, whose scheduler would mix the Kubernetes nodes of two files.
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
