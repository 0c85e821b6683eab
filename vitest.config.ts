import { defineConfig, type UserWorkspaceConfig } from 'vitest/config'
import { LongestFirst } from './testing/longest-first.ts'

/** The projects, by what their tests need. A test file that no pattern here matches belongs to `api`. */
const FILES = {
  /** Nothing but memory and files: no service, no build. */
  unit: [
    '{server,cli,sdk}/test/unit/**/*.test.ts',
    '{contract,dashboard,protocol,site}/**/*.test.ts',
    'sdk/test/paywall-parts.test.ts',
    'test/{contract,docs,docs/commands,imports,layout,lock-file,spawn}.test.ts',
    'test/deploy/{files,metrics}.test.ts',
  ],
  /** Daemons that are started, stopped, killed, updated and taken over. */
  process: ['server/test/{nodes,process}/**/*.test.ts', 'sandboxd/test/**/*.test.ts'],
  /** Chromium. */
  browser: ['test/browser/**/*.test.ts'],
  /** Other people's clients and libraries, and what the documentation tells people to type. */
  interop: [
    'test/interop/**/*.test.ts',
    'test/{demo,examples,gateway-guide,quickstart,docs/reference,docs/typed}.test.ts',
    'test/deploy/image.test.ts',
  ],
  /** A service that kills itself between an effect and its record. */
  crash: ['server/test/crash/**/*.test.ts', 'sandboxd/test/crash.test.ts'],
}
/** Tests on Kubernetes need a control plane: see vitest.kubernetes.config.ts and vitest.chart.config.ts. */
const NEVER = ['**/node_modules/**', '**/dist/**', '**/test/kubernetes/**']

type Name = keyof typeof FILES | 'api'

function project(name: Name, exclude: string[] = []): UserWorkspaceConfig {
  return {
    // As in the service that people run.
    define: { CRASHPOINTS: 'false' },
    // Examples import the SDK by its name, as users do. Here, the name stands for the source.
    resolve: { tsconfigPaths: true },
    test: {
      name,
      include: name === 'api' ? ['**/*.test.ts'] : FILES[name],
      exclude: [...NEVER, ...exclude],
      isolate: false,
      // The service runs as it was built. Node loads it once for all files of a worker.
      server: { deps: { external: [/\/server\/dist\//] } },
      // Unit tests leave no state in modules, so they need no fresh ones.
      setupFiles: name === 'unit' ? [] : ['testing/fresh-modules.ts'],
      // Every test starts real daemons and talks to them over sockets; two cores share them all. The limits only end tests
      // that hang.
      testTimeout: 300_000,
      hookTimeout: 300_000,
      expect: { poll: { timeout: 120_000 } },
    },
  }
}

export default defineConfig({
  define: { CRASHPOINTS: 'false' },
  test: {
    projects: [
      project('unit'),
      project('api', Object.values(FILES).flat()),
      project('process', FILES.crash),
      project('browser'),
      project('interop'),
      project('crash'),
    ],
    globalSetup: ['testing/setup.ts'],
    sequence: { sequencer: LongestFirst },
    // Transformed files are kept in node_modules, by their content, for the next run.
    experimental: { fsModuleCache: true },
    reporters: ['default', './testing/slowest-files.ts'],
    // Twice the cores of the machines that run it: tests of daemons spend half of their time waiting for them.
    maxWorkers: 4,
    // A worker that ends late on a busy machine is not an error.
    teardownTimeout: 60_000,
  },
})
