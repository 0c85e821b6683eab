import type { TestProject } from 'vitest/node'
import { buildBundles } from './bundles.ts'
import { type Promised, promisedAnswers } from './contract.ts'
import { startTestPostgres, type TestPostgres } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: TestPostgres
    contract: Promised[]
  }
}

/** Runs before the first test: builds bundles and starts PostgreSQL, once for all files. Unit tests need neither. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (project.vitest.projects.every(({ name }) => name === 'unit')) return undefined
  await buildBundles()
  const { postgres, stop } = await startTestPostgres()
  project.provide('postgres', postgres)
  project.provide('contract', promisedAnswers())
  return stop
}
