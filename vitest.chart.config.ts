import { defineConfig } from 'vitest/config'

/** The chart on a real cluster with containers. It starts a control plane of its own, which pods can reach. */
export default defineConfig({
  define: { CRASHPOINTS: 'false' },
  test: {
    include: ['test/kubernetes/**/*.test.ts'],
    globalSetup: ['testing/setup.ts'],
    // Each test continues where the one before ended.
    bail: 1,
    testTimeout: 1_200_000,
    // Builds the control plane, if that has not been done, and the images.
    hookTimeout: 3_600_000,
  },
})
