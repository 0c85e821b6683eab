import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lookUpUser } from '../server/src/platform/linux.ts'
import type { Store } from './postgres.ts'
import { TestProgram } from './program.ts'

// Debian installs PgBouncer in /usr/sbin, which is often not on the PATH.
const PROGRAM = ['pgbouncer', '/usr/sbin/pgbouncer'].find((name) => spawnSync(name, ['--version']).status === 0)

export const hasPgBouncer = PROGRAM !== undefined

/** A real PgBouncer in front of a database, in session mode. */
export class TestPgBouncer extends TestProgram {
  readonly #store: Store

  constructor(store: Store) {
    super('pgbouncer')
    this.#store = store
  }

  get url(): string {
    const { user, password, database } = this.#store
    return `postgres://${user}:${password}@127.0.0.1:${this.port}/${database}`
  }

  async start(): Promise<void> {
    if (PROGRAM === undefined) throw new Error('pgbouncer is not installed')
    // PgBouncer refuses to run as root.
    const as = process.getuid?.() === 0 ? lookUpUser('postgres', 'nobody') : undefined
    chmodSync(this.directory, 0o755)
    await this.launch(PROGRAM, () => ['-q', this.#writeSettings()], as)
  }

  #writeSettings(): string {
    const { host, port, user, password, database } = this.#store
    const [file, users] = [join(this.directory, 'pgbouncer.ini'), join(this.directory, 'users.txt')]
    writeFileSync(users, `"${user}" "${password}"\n`)
    writeFileSync(
      file,
      `[databases]
${database} = host=${host} port=${port} user=${user} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${this.port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = session
default_pool_size = 100
`,
    )
    return file
  }
}
