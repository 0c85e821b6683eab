import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../sandboxd/test/harness.ts'
import { lookUpUser } from '../server/src/platform/linux.ts'
import { eventually } from './eventually.ts'
import type { Store } from './postgres.ts'

// Debian installs it where only administrators look.
const PROGRAM = ['pgbouncer', '/usr/sbin/pgbouncer'].find((name) => spawnSync(name, ['--version']).status === 0)

export const hasPgBouncer = PROGRAM !== undefined

/** A real PgBouncer in front of a database, in session mode. */
export class TestPgBouncer {
  readonly #directory = mkdtempSync(join(tmpdir(), 'boltyard-pgbouncer-'))
  readonly #store: Store
  #child: ChildProcess | undefined
  #port = 0

  constructor(store: Store) {
    this.#store = store
  }

  get url(): string {
    const { user, password, database } = this.#store
    return `postgres://${user}:${password}@127.0.0.1:${this.#port}/${database}`
  }

  async start(): Promise<void> {
    if (PROGRAM === undefined) throw new Error('pgbouncer is not installed')
    this.#port ||= await freePort()
    const { host, port, user, password, database } = this.#store
    // It refuses to run as root.
    const as = process.getuid?.() === 0 ? lookUpUser('postgres', 'nobody') : undefined
    chmodSync(this.#directory, 0o755)
    const file = join(this.#directory, 'pgbouncer.ini')
    writeFileSync(join(this.#directory, 'users.txt'), `"${user}" "${password}"\n`)
    writeFileSync(
      file,
      `[databases]
${database} = host=${host} port=${port} user=${user} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${this.#port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(this.#directory, 'users.txt')}
pool_mode = session
default_pool_size = 100
`,
    )
    this.#child = spawn(PROGRAM, ['-q', file], { ...as, stdio: 'ignore' })
    await eventually(() => accepts(this.#port), 'PgBouncer to start')
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child) return
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.end()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
