import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { inject, onTestFinished } from 'vitest'
import { SERVER } from '../../../testing/bundles.ts'
import { dropDatabase } from '../../../testing/postgres.ts'
import { openStore } from '../../src/store/db.ts'
import { type Store, temporaryDirectory, track } from './server.ts'

/** The program's commands, as an operator runs them. */

export type Outcome = { code: number | null; stdout: string; stderr: string }

export function run(args: string[], env: Record<string, string>): Outcome {
  const environment = { PATH: process.env.PATH, DATA_DIR: temporaryDirectory(), ...env }
  const { status, stdout, stderr } = spawnSync(process.execPath, [SERVER, ...args], { env: environment, encoding: 'utf8' })
  return { code: status, stdout, stderr }
}

/** Without any tables; dropped when the test has finished. */
export async function emptyDatabase(): Promise<Store> {
  const postgres = inject('postgres')
  const store = { ...postgres.store, database: `test_${randomBytes(8).toString('hex')}` }
  const admin = track(openStore({ ...store, database: 'template1' }, 1))
  await admin.unsafe(`CREATE DATABASE ${store.database} TEMPLATE template0`)
  onTestFinished(() => dropDatabase(postgres, store))
  return store
}
