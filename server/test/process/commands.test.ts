import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { COMMANDS } from '../../src/commands/commands.ts'
import { openStore } from '../../src/store/db.ts'
import { readMigrations } from '../../src/store/migrate.ts'
import { emptyDatabase, run } from '../support/commands.ts'
import { storeEnv, track } from '../support/server.ts'

test('migrate brings a database up to date and exits; a second run changes nothing', async () => {
  const store = await emptyDatabase()
  const env = storeEnv(store, randomBytes(32).toString('base64'))
  const sql = track(openStore(store, 1))
  const applied = () => sql`SELECT version, applied_at FROM schema_migrations ORDER BY version`
  expect(run(['migrate'], env)).toEqual({ code: 0, stdout: '', stderr: '' })
  const first = await applied()
  expect(first.map(({ version }) => version)).toEqual(readMigrations().map(({ version }) => version))
  // The command only migrates: it creates no account, treasury or node.
  expect(await sql`SELECT 1 FROM accounts`).toEqual([])
  expect(run(['migrate'], env)).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(await applied()).toEqual(first)
})

test('migrate without DATABASE_URL, and an unknown command, are refused with one line', () => {
  expect(run(['migrate'], {})).toEqual({ code: 78, stdout: '', stderr: expect.stringMatching(/^DATABASE_URL: [^\n]+\n$/) })
  for (const name of ['nonsense', 'toString', '--version'])
    expect(run([name], {})).toEqual({
      code: 78,
      stdout: '',
      stderr: expect.stringMatching(/^unknown command[^\n]+migrate, backup, restore, adopt, release\n$/),
    })
})

test('--help explains every command, wherever it stands, and needs no valid configuration', () => {
  for (const args of [['--help'], ['-h'], ['help'], ['adopt', '--help']]) {
    const { code, stdout, stderr } = run(args, { DATABASE_URL: 'nonsense' })
    expect([code, stderr]).toEqual([0, ''])
    for (const name of Object.keys(COMMANDS)) expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'))
  }
})
