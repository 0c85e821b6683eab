import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { expect, inject, onTestFinished, test } from 'vitest'
import { SERVER } from '../../../testing/bundles.ts'
import { dropDatabase } from '../../../testing/postgres.ts'
import { openStore } from '../../src/store/db.ts'
import { readMigrations } from '../../src/store/migrate.ts'
import { type Store, storeEnv, temporaryDirectory, track } from '../support/server.ts'

function run(args: string[], env: Record<string, string>): { code: number | null; stdout: string; stderr: string } {
  const environment = { PATH: process.env.PATH, DATA_DIR: temporaryDirectory(), ...env }
  const { status, stdout, stderr } = spawnSync(process.execPath, [SERVER, ...args], { env: environment, encoding: 'utf8' })
  return { code: status, stdout, stderr }
}

async function emptyDatabase(): Promise<Store> {
  const { store } = inject('postgres')
  const database = `test_${randomBytes(8).toString('hex')}`
  const admin = track(openStore({ ...store, database: 'template1' }, 1))
  await admin.unsafe(`CREATE DATABASE ${database} TEMPLATE template0`)
  return { ...store, database }
}

test('migrate brings a database up to date and exits; again, it changes nothing', async () => {
  const store = await emptyDatabase()
  onTestFinished(() => dropDatabase(inject('postgres'), store))
  const env = storeEnv(store, randomBytes(32).toString('base64'))
  const sql = track(openStore(store, 1))
  const applied = () => sql`SELECT version, applied_at FROM schema_migrations ORDER BY version`
  expect(run(['migrate'], env)).toEqual({ code: 0, stdout: '', stderr: '' })
  const first = await applied()
  expect(first.map(({ version }) => version)).toEqual(readMigrations().map(({ version }) => version))
  // It only migrates: no account, no treasury, no node.
  expect(await sql`SELECT 1 FROM accounts`).toEqual([])
  expect(run(['migrate'], env)).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(await applied()).toEqual(first)
})

test('migrate without DATABASE_URL, and an unknown command, are refused with one line', () => {
  expect(run(['migrate'], {})).toEqual({ code: 78, stdout: '', stderr: expect.stringMatching(/^DATABASE_URL: [^\n]+\n$/) })
  for (const name of ['nonsense', 'toString', '--help'])
    expect(run([name], {})).toEqual({ code: 78, stdout: '', stderr: expect.stringMatching(/^unknown command[^\n]+migrate\n$/) })
})
