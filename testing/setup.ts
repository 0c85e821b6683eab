import type { TestProject } from 'vitest/node'
import { buildBundles } from './bundles.ts'
import { startTestPostgres, type TestPostgres } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: TestPostgres
  }
}

/** Before the first test: bundles and PostgreSQL, once for all files. Unit tests need neither, and start without them. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (project.vitest.projects.every(({ name }) => name === 'unit')) return undefined
  await buildBundles()
  const { postgres, stop } = await startTestPostgres()
  project.provide('postgres', postgres)
  return stop
}
