import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lookUpUser } from '../server/src/platform/linux.ts'
import { eventually } from './eventually.ts'
import type { Store } from './postgres.ts'

/** The directory of the programs of the PostgreSQL that Debian installs; undefined if there is none. */
export function debianPostgres(): string | undefined {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return undefined
  const versions = readdirSync(root).sort((one, other) => Number(one) - Number(other))
  return versions.map((version) => join(root, version, 'bin')).findLast((path) => existsSync(join(path, 'initdb')))
}

/** A separate cluster, on a Unix socket or, for clients on other machines, on an address of this machine. */
export async function startDebianPostgres(
  programs: string,
  address?: string,
): Promise<{ store: Store; stop: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-debian-'))
  // If the tests run as root, PostgreSQL runs as another user, who must be able to reach its directory.
  chmodSync(directory, 0o711)
  const user = process.getuid?.() === 0 ? lookUpUser('postgres', 'nobody') : undefined
  const place = join(directory, 'postgres')
  mkdirSync(place, { mode: 0o700 })
  const password = randomBytes(16).toString('hex')
  writeFileSync(join(place, 'password'), password)
  if (user) chownSync(place, user.uid, user.gid)
  const cluster = join(place, 'data')
  const options = { ...user, cwd: place, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } }
  const args = ['-D', cluster, '-U', 'tester', '--auth=scram-sha-256', `--pwfile=${join(place, 'password')}`, '--no-sync']
  execFileSync(join(programs, 'initdb'), [...args, '--encoding=UTF8', '--locale=C'], { ...options, stdio: 'ignore' })
  if (address !== undefined) appendFileSync(join(cluster, 'pg_hba.conf'), 'host all all samenet scram-sha-256\n')
  const settings = ['-k', place, '-c', `listen_addresses=${address ?? ''}`]
  const child = spawn(join(programs, 'postgres'), ['-D', cluster, ...settings], { ...options, stdio: 'ignore' })
  const ended = once(child, 'close')
  await eventually(() => readFileSync(join(cluster, 'postmaster.pid'), 'utf8').includes('ready'), 'PostgreSQL to start')
  return {
    store: { host: address ?? place, port: 5432, user: 'tester', password, database: 'postgres' },
    stop: async () => {
      child.kill('SIGQUIT')
      await ended
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
