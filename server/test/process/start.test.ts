import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { SERVER } from '../../../testing/bundles.ts'
import { readConfig } from '../../src/config.ts'
import { isRunning, lookUpUser } from '../../src/platform/linux.ts'
import { openStore } from '../../src/store/db.ts'
import {
  eventually,
  PROCESS,
  processesIn,
  removeAfterwards,
  Server,
  send,
  startServer,
  storeEnv,
  temporaryDirectory,
  track,
} from '../support/server.ts'

const isRoot = process.getuid?.() === 0
const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)
/** The name of a user other than this one. */
const anotherUser = (not: number): string => (lookUpUser('nobody')?.uid === not ? 'daemon' : 'nobody')
const newMasterKey = (): string => randomBytes(32).toString('base64')

/** Expects the service to exit with messages for the operator on stderr, without a stack trace, and with nothing on stdout. */
async function expectFault(server: Server, code: number, ...says: RegExp[]): Promise<void> {
  await server.launch()
  const end = await Promise.race([server.exited, server.printed(/^boltyard ready/m).catch(() => server.exited)])
  await server.kill()
  expect(end).toEqual({ code, signal: null })
  expect(linesOf(server.stderr)).toEqual(says.map((pattern) => expect.stringMatching(pattern)))
  expect(server.stdout).toBe('')
}

describe('bad configuration', () => {
  const SECRET = 'hidden-value'
  const file = (text: string): string => {
    const path = join(temporaryDirectory(), SECRET)
    writeFileSync(path, text)
    return path
  }
  const database = { DATABASE_URL: 'postgres://h/d', MASTER_KEY: newMasterKey() }
  const wrong: [variable: string, environment: () => Record<string, string>][] = [
    ...['x', '-1', '65536', '8402.0', '1e3', ' 1', '0x10', '٣'].map((PORT): [string, () => Record<string, string>] => [
      'PORT',
      () => ({ PORT }),
    ]),
    ['PUBLIC_URL', () => ({ HOST: '0.0.0.0' })],
    ['PUBLIC_URL', () => ({ HOST: '::' })],
    ...[
      'hidden-value',
      'ftp://hidden-value',
      'https://u:hidden-value@x',
      'https://x?hidden-value',
      'https://x#hidden-value',
      '//x',
    ].map((PUBLIC_URL): [string, () => Record<string, string>] => ['PUBLIC_URL', () => ({ PUBLIC_URL })]),
    ['DATABASE_URL', () => ({ ...database, DATABASE_URL: 'mysql://u:hidden-value@h/d' })],
    ['DATABASE_URL', () => ({ ...database, DATABASE_URL: 'hidden-value' })],
    ['DATABASE_URL', () => ({ ...database, DATABASE_URL: 'postgres://u:hidden-value@[x/d' })],
    ['DATABASE_URL', () => ({ ...database, DATABASE_URL_FILE: file(SECRET) })],
    ['DATABASE_URL_FILE', () => ({ MASTER_KEY: newMasterKey(), DATABASE_URL_FILE: '/nonexistent/hidden-value' })],
    ['DATABASE_URL_FILE', () => ({ MASTER_KEY: newMasterKey(), DATABASE_URL_FILE: file(' \n') })],
    ['REDIS_URL', () => ({ REDIS_URL: 'http://:hidden-value@h' })],
    ['REDIS_URL', () => ({ REDIS_URL: 'redis://:hidden-value@[x' })],
    ['REDIS_URL_FILE', () => ({ REDIS_URL_FILE: '/nonexistent/hidden-value' })],
    ['METRICS_PORT', () => ({ METRICS_PORT: '0' })],
    ['METRICS_PORT', () => ({ METRICS_PORT: '65536' })],
    ['METRICS_TOKEN', () => ({ METRICS_PORT: '9464', METRICS_TOKEN: 'hidden-value and more' })],
    ['MASTER_KEY', () => ({ DATABASE_URL: 'postgres://h/d' })],
    ['MASTER_KEY', () => ({ MASTER_KEY: SECRET })],
    ['MASTER_KEY', () => ({ MASTER_KEY: randomBytes(31).toString('base64') })],
    ['MASTER_KEY', () => ({ MASTER_KEY: randomBytes(33).toString('base64') })],
    ['MASTER_KEY', () => ({ MASTER_KEY: randomBytes(32).toString('hex') })],
    ['MASTER_KEY', () => ({ MASTER_KEY: newMasterKey(), MASTER_KEY_FILE: file(newMasterKey()) })],
    ['MASTER_KEY', () => ({ MASTER_KEY_FILE: file(SECRET) })],
    ['MASTER_KEY_FILE', () => ({ MASTER_KEY_FILE: '/nonexistent/hidden-value' })],
    ['MASTER_KEY_PREVIOUS', () => ({ MASTER_KEY_PREVIOUS: SECRET })],
    ['OPERATOR_TOKEN', () => ({ OPERATOR_TOKEN: 'hidden-value-of-31-characters-x' })],
    ['OPERATOR_TOKEN', () => ({ OPERATOR_TOKEN: 'hidden-value with spaces, which no header can carry' })],
    ['OPERATOR_TOKEN_FILE', () => ({ OPERATOR_TOKEN_FILE: dirname(file('')) })],
    ...['0', 'true', 'all', '*', '10.0.0.0/0', '::/0', '10.0.0.0/33', '1.2.3', 'loopback', '10.0.0.1,,', '-1', '1.5'].map(
      (TRUST_PROXY): [string, () => Record<string, string>] => ['TRUST_PROXY', () => ({ TRUST_PROXY })],
    ),
    ['RATE_LIMIT_MAX', () => ({ RATE_LIMIT_MAX: '0' })],
    ['RATE_LIMIT_WINDOW_SECONDS', () => ({ RATE_LIMIT_WINDOW_SECONDS: '86401' })],
    ['SIGNUP_CREDIT_SAT', () => ({ SIGNUP_CREDIT_SAT: '99999999999' })],
    ['CREDIT_GRACE_HOURS', () => ({ CREDIT_GRACE_HOURS: 'two days' })],
    ['TREASURY_NODE_ID', () => ({ TREASURY_NODE_ID: 'node_of_somebody' })],
    ['MAX_KEYS_PER_ACCOUNT', () => ({ MAX_KEYS_PER_ACCOUNT: '0' })],
    ['LOG_LEVEL', () => ({ LOG_LEVEL: 'loud' })],
    ['HOST', () => ({ HOST: 'hidden-value and more' })],
    ...['hidden-value:80', 'a,,b', '*.hidden-value', 'http://hidden-value', 'hidden-value/', 'a b', '[::1', '::1'].map(
      (ALLOWED_HOSTS): [string, () => Record<string, string>] => ['ALLOWED_HOSTS', () => ({ ALLOWED_HOSTS })],
    ),
    ['NODE_DOMAIN', () => ({ NODE_DOMAIN: 'hidden value' })],
    ['NODE_DOMAIN', () => ({ NODE_DOMAIN: 'hidden-value:65536' })],
    ...['hidden-value.example', 'example', 'example:8443'].map((NODE_DOMAIN): [string, () => Record<string, string>] => [
      'NODE_DOMAIN',
      () => ({ NODE_DOMAIN, PUBLIC_URL: 'https://hidden-value.example' }),
    ]),
    ['PUBLIC_URL', () => ({ PUBLIC_URL: 'https://hidden-value.example.' })],
    ...['x', '50000', '50000-', '50000-50000', '54999-50000', '999-2000', '50000-2000000001', '50000–54999', ' 50000-54999'].map(
      (NODE_UID_RANGE): [string, () => Record<string, string>] => ['NODE_UID_RANGE', () => ({ NODE_UID_RANGE })],
    ),
    // Only root can run processes as other users.
    ...(isRoot
      ? ([
          ['NODE_UID_RANGE', () => ({ NODE_UID_RANGE: `65000-${lookUpUser('nobody')?.uid}` })],
          ['POSTGRES_USER_NAME', () => ({ POSTGRES_USER_NAME: SECRET })],
          ['POSTGRES_USER_NAME', () => ({ POSTGRES_USER_NAME: 'root' })],
        ] satisfies [string, () => Record<string, string>][])
      : []),
  ]

  test.each(wrong)('%s is named, and its value is not (%#)', (variable, environment) => {
    const values = environment()
    let fault: unknown
    try {
      readConfig(values)
    } catch (error) {
      fault = error
    }
    expect(fault).toMatchObject({ exitCode: 78, message: expect.stringMatching(new RegExp(`^${variable}: [^\\n]+$`)) })
    expect((fault as Error).message).not.toContain(SECRET)
  })

  // Checks the message, because as root these ranges would also be refused for containing ids of existing users.
  test.each(['999-2000', '50000-2000000001'])('security 10: NODE_UID_RANGE %s is out of bounds', (NODE_UID_RANGE) => {
    expect(() => readConfig({ NODE_UID_RANGE })).toThrow(/a range first-last/)
  })

  const right: Record<string, string>[] = [
    {},
    { PORT: '0' },
    { PORT: '' },
    { HOST: '0.0.0.0', PUBLIC_URL: 'https://pay.example/' },
    { TRUST_PROXY: '1' },
    { TRUST_PROXY: '10.0.0.1, 10.0.0.0/8,::1,2001:db8::/32' },
    { DATABASE_URL: 'postgresql://u:p@h:5432/d', MASTER_KEY: newMasterKey() },
    { MASTER_KEY: newMasterKey().replace('=', '') },
    { OPERATOR_TOKEN: 'x'.repeat(32) },
    { LOG_LEVEL: 'silent' },
    { ALLOWED_HOSTS: 'a.example, B.example,10.0.0.1,[::1],xn--bcher-kva.example' },
    { NODE_DOMAIN: 'nodes.example:8443' },
    { NODE_DOMAIN: 'nodes.yard.example', PUBLIC_URL: 'https://yard.example' },
    { NODE_DOMAIN: 'ard.example', PUBLIC_URL: 'https://yard.example' },
    { NODE_UID_RANGE: '60000-60001', POSTGRES_USER_NAME: 'nobody' },
  ]
  test.each(right)('%j is accepted', (environment) => expect(() => readConfig(environment)).not.toThrow())

  const PHOENIXD = { NODE_SOFTWARE: 'phoenixd', NODE_VERSIONS: '0.8.0=/bin/true' }
  test.each<[env: Record<string, string>, isLocal: boolean]>([
    [{}, true],
    [{ HOST: 'localhost' }, true],
    [{ HOST: '::1' }, true],
    [{ HOST: '127.3.2.1' }, true],
    [{ PUBLIC_URL: 'http://localhost:1' }, true],
    [{ PUBLIC_URL: 'http://[::1]:1/x' }, true],
    [{ HOST: '0.0.0.0', PUBLIC_URL: 'http://127.0.0.1' }, false],
    [{ HOST: '192.0.2.1' }, false],
    [{ HOST: '127.evil.example' }, false],
    [{ PUBLIC_URL: 'https://yard.example' }, false],
    [{ PUBLIC_URL: 'https://127.0.0.1.evil.example' }, false],
    [{ PUBLIC_URL: 'https://localhost.evil.example' }, false],
    [PHOENIXD, false],
  ])('C51: with %j the defaults are open: %j', (env, isLocal) => {
    const { registration, operator, isLocal: local } = readConfig(env)
    expect([local, registration, operator]).toEqual(isLocal ? [true, 'open', 'generate'] : [false, 'invite', 'off'])
  })

  test.each<[env: Record<string, string>, warned: boolean]>([
    [{ PUBLIC_URL: 'https://yard.example' }, true],
    [{ PUBLIC_URL: 'https://yard.example', TRUST_PROXY: '1' }, false],
    [{ PUBLIC_URL: 'https://yard.example', HOST: '0.0.0.0' }, false],
    [{}, false],
  ])('C51: with %j it warns that all clients have one address: %j', (env, warned) => {
    expect(readConfig(env).warnings).toEqual(warned ? [expect.stringMatching(/TRUST_PROXY/)] : [])
  })

  test('78, one line per invalid variable, and nothing is created', async () => {
    const dataDir = join(temporaryDirectory(), 'data')
    const env = {
      PORT: 'hidden-1',
      LOG_LEVEL: 'hidden-2',
      TRUST_PROXY: 'hidden-3',
      MASTER_KEY: 'hidden-4',
      OPERATOR_TOKEN: 'hidden-5',
    }
    const server = new Server({ command: PROCESS, dataDir, env })
    await expectFault(server, 78, /^PORT: /, /^MASTER_KEY: /, /^OPERATOR_TOKEN: /, /^LOG_LEVEL: /, /^TRUST_PROXY: /)
    expect(server.stderr).not.toContain('hidden')
    expect(existsSync(dataDir)).toBe(false)
  })
})

describe('an unusable data directory: one line, and a non-zero exit code', () => {
  test('because it is a file', async () => {
    const dataDir = join(temporaryDirectory(), 'file')
    writeFileSync(dataDir, 'mine')
    await expectFault(new Server({ command: PROCESS, dataDir }), 1, /^DATA_DIR: cannot use .*file/)
    expect(readFileSync(dataDir, 'utf8')).toBe('mine')
  })

  test('because its parent is a file', async () => {
    const path = join(temporaryDirectory(), 'file')
    writeFileSync(path, '')
    await expectFault(new Server({ command: PROCESS, dataDir: join(path, 'data') }), 1, /^DATA_DIR: cannot use /)
  })

  test('because its lock file is a directory', async () => {
    const dataDir = temporaryDirectory()
    mkdirSync(join(dataDir, 'lock'))
    await expectFault(new Server({ command: PROCESS, dataDir }), 1, /^DATA_DIR: cannot use .*lock/)
  })
})

describe('one instance through its life', () => {
  let server: Server
  let key: string

  beforeAll(async () => {
    server = await startServer({ command: PROCESS, store: 'none' })
    key = server.firstRun.apiKey
  })

  const secrets = (): string[] => [
    key,
    ...['operator.token', 'master.key', 'postgres.password'].map((name) => server.readSecret(name)),
  ]
  const databaseProcesses = (): number[] => processesIn(join(server.dataDir, 'postgres'))
  const works = async (): Promise<boolean> => (await server.send('GET', '/v1/api-key', { token: key })).status === 200
  const names = async (): Promise<string[]> =>
    (await server.operator('GET', '/accounts')).json().accounts.map(({ name }: { name: string }) => name)

  test('the first start prints one line on stdout, and on stderr where the key is, but not the key', async () => {
    expect(server.stdout).toBe(`boltyard ready http://127.0.0.1:${server.port}\n`)
    expect(server.stderr).toContain(join(server.dataDir, 'first-run.json'))
    expect(server.stderr).not.toContain(key)
    // The suggested command reads the key from that file.
    const reading = /^\s*curl .*"Authorization: Bearer (\$\(.+\))"/m.exec(server.stderr)?.[1] ?? ''
    expect(execFileSync('sh', ['-c', `printf %s "${reading}"`], { encoding: 'utf8' })).toBe(key)
  })

  test('every secret is readable only by its owner, and so is the database', () => {
    expect(modeOf(server.dataDir)).toBe(isRoot ? '711' : '700')
    for (const name of ['first-run.json', 'operator.token', 'master.key', 'postgres.password']) {
      expect([name, modeOf(join(server.dataDir, name)), statSync(join(server.dataDir, name)).uid]).toEqual([
        name,
        '600',
        process.getuid?.(),
      ])
    }
    const postgres = join(server.dataDir, 'postgres')
    expect([modeOf(postgres), modeOf(join(postgres, 'data'))]).toEqual(['700', '700'])
    if (isRoot) expect(statSync(postgres).uid).toBe(lookUpUser('postgres', 'nobody')?.uid)
    // Files that other users can reach, because every directory above them allows it. The binaries are not secret.
    const reachable = (directory: string): string[] =>
      readdirSync(directory).flatMap((name) => {
        const path = join(directory, name)
        const { mode } = lstatSync(path)
        if ((mode & 0o077) === 0) return []
        return statSync(path).isDirectory() ? reachable(path) : [path.slice(server.dataDir.length)]
      })
    const open = reachable(server.dataDir).filter((path) => !path.startsWith('/software/'))
    expect(open).toEqual([])
  })

  test('the database listens on no network and requires a password', async () => {
    const [row] = await server.sql()`SHOW listen_addresses`
    expect(row?.listen_addresses).toBe('')
    const stranger = track(openStore({ ...server.store, password: 'guess' }))
    await expect(stranger`SELECT 1`).rejects.toMatchObject({ code: '28P01' })
  })

  test('C17: no secret is in its output, or in an argument or environment of its processes', async () => {
    await server.newAccount()
    expect(await works()).toBe(true)
    const pids = [server.child.pid ?? 0, ...processesIn(server.dataDir)]
    expect(pids.length).toBeGreaterThan(2)
    const places = pids.flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`])
    // A process of PostgreSQL may exit during the check.
    const texts = places.flatMap((path) => (existsSync(path) ? [readFileSync(path, 'latin1')] : []))
    texts.push(server.stdout, server.stderr, readFileSync(join(server.dataDir, 'run', 'postgres.log'), 'utf8'))
    for (const secret of secrets()) expect(texts.filter((text) => text.includes(secret))).toEqual([])
  })

  test('security 25: PostgreSQL’s log of a rejected row does not quote the row', async () => {
    const sql = server.sql()
    const email = 'somebody@private.example'
    await sql`CREATE TABLE guests (email text UNIQUE)`
    await sql`INSERT INTO guests VALUES (${email})`
    await expect(sql`INSERT INTO guests VALUES (${email})`).rejects.toMatchObject({ code: '23505' })
    await sql`DROP TABLE guests`
    const log = readFileSync(join(server.dataDir, 'run', 'postgres.log'), 'utf8')
    expect(log).toContain('guests_email_key')
    expect(log).not.toContain(email)
  })

  test.skipIf(!isRoot)('a POSTGRES_USER_NAME that does not own the database: 78', async () => {
    await server.stop()
    const env = { POSTGRES_USER_NAME: anotherUser(statSync(join(server.dataDir, 'postgres')).uid) }
    await expectFault(new Server({ command: PROCESS, dataDir: server.dataDir, env }), 78, /^POSTGRES_USER_NAME: /)
    await server.start()
    expect(await works()).toBe(true)
  })

  test('75 for a second instance on the same data directory, and the first keeps running', async () => {
    await expectFault(
      new Server({ command: PROCESS, dataDir: server.dataDir }),
      75,
      /^DATA_DIR: another instance is already using /,
    )
    expect(await works()).toBe(true)
  })

  test('a port in use: one line, and a non-zero exit code', async () => {
    const late = new Server({ command: PROCESS, env: { ...server.sharedStoreEnv, PORT: String(server.port) } })
    await expectFault(late, 1, /^PORT: \S+:\d+ is already in use \(EADDRINUSE\)\. .* set PORT /)
  })

  test('a database that refuses the connection: 78 and one line without the password', async () => {
    const late = new Server({ command: PROCESS, env: storeEnv({ ...server.store, password: 'hidden-value' }, server.masterKey) })
    await expectFault(late, 78, /^DATABASE_URL: .*28P01/)
    expect(late.stderr).not.toContain('hidden-value')
  })

  test('a MASTER_KEY that does not match the database: 78; with the right one as the previous key it is changed permanently', async () => {
    const [env, other] = [server.sharedStoreEnv, newMasterKey()]
    await expectFault(new Server({ command: PROCESS, env: { ...env, MASTER_KEY: other } }), 78, /^MASTER_KEY: not the key/)
    const own = { ...env, MASTER_KEY_PREVIOUS: env.MASTER_KEY ?? '', MASTER_KEY: other }
    // Waits until everything is resealed: a service that stops earlier still needs the previous key at its next start.
    const changeTo = async (wanted: Record<string, string>): Promise<void> => {
      const changing = await startServer({ command: PROCESS, env: wanted })
      await changing.printed(/rows resealed/, 'stderr')
      await changing.stop()
    }
    await changeTo(own)
    await expectFault(new Server({ command: PROCESS, env }), 78, /^MASTER_KEY: not the key/)
    await changeTo({ ...env, MASTER_KEY_PREVIOUS: other })
  })

  const post = (body: string): string =>
    [
      'POST /operator/v1/accounts HTTP/1.1',
      'Host: localhost',
      'X-Request-Id: in-flight',
      `Authorization: Bearer ${server.operatorToken}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      '',
      '',
    ].join('\r\n')
  const answerOn = async (socket: Socket): Promise<string> => {
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    await once(socket, 'close')
    return text
  }

  test('SIGTERM: no new connections, running requests finish, new ones get 503, and soon exit 0 with PostgreSQL stopped', async () => {
    const body = '{"name":"in flight"}'
    const [running, late] = [connect(server.port, '127.0.0.1'), connect(server.port, '127.0.0.1')]
    const [finished, refused] = [answerOn(running), answerOn(late)]
    running.write(post(body) + body.slice(0, 5))
    late.write('GET /v1/api-key HTTP/1.1\r\n')
    await server.printed(/"reqId":"in-flight"/, 'stderr')
    const began = performance.now()
    server.child.kill('SIGTERM')
    await eventually(
      () =>
        send(server.port, 'GET', '/healthz').then(
          () => false,
          (error) => error.code === 'ECONNREFUSED',
        ),
      'the port to close',
    )
    late.write(`Host: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    expect(await refused).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: [1-9]\d*\r\n[\s\S]*"code":"service_unavailable"/i)
    running.write(body.slice(5))
    expect(await finished).toMatch(/^HTTP\/1\.1 201 /)
    expect(await server.exited).toEqual({ code: 0, signal: null })
    expect(performance.now() - began).toBeLessThan(60_000)
    expect(databaseProcesses()).toEqual([])
  })

  test('the second start prints no greeting, keeps every secret, and has all acknowledged data', async () => {
    const before = secrets()
    await server.start()
    expect(server.stderr).not.toMatch(/First start|first-run/)
    expect(secrets()).toEqual(before)
    expect(await works()).toBe(true)
    expect((await names()).filter((name) => name === 'default')).toHaveLength(1)
    expect(await names()).toContain('in flight')
  })

  test('first-run.json may be deleted once the key is stored elsewhere: it is not created again', async () => {
    const file = join(server.dataDir, 'first-run.json')
    rmSync(file)
    await server.restart()
    expect(existsSync(file)).toBe(false)
    expect(await works()).toBe(true)
    expect((await names()).filter((name) => name === 'default')).toHaveLength(1)
  })

  test('kill -9 of the service under load: PostgreSQL keeps running, the next start finds it, and nothing acknowledged is lost', async () => {
    const postmaster = server.postmasterPid
    const acknowledged: string[] = []
    const writer = async (name: string): Promise<void> => {
      for (let index = 0; ; index++) {
        const made = await server.newAccount({ name: `${name}-${index}` }).catch(() => undefined)
        if (!made) return
        acknowledged.push(made.name)
      }
    }
    const writers = ['a', 'b', 'c', 'd'].map(writer)
    await eventually(() => acknowledged.length > 20, 'some work')
    await server.kill()
    await Promise.all(writers)
    expect(isRunning(postmaster)).toBe(true)
    await server.start()
    expect(server.postmasterPid).toBe(postmaster)
    expect(await names()).toEqual(expect.arrayContaining(acknowledged))
  })

  test('kill -9 of PostgreSQL: 503 with Retry-After meanwhile, then recovery without a restart, and nothing acknowledged is lost', async () => {
    const { name } = await server.newAccount({ name: 'before the crash' })
    const { giveBack } = await server.takeStoreAway()
    const answer = await server.operator('GET', '/accounts')
    expect([answer.status, answer.json().error.code]).toEqual([503, 'service_unavailable'])
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/)
    giveBack()
    await eventually(async () => (await server.send('GET', '/readyz')).status === 200, 'PostgreSQL to be back')
    expect(await names()).toContain(name)
    expect((await server.newAccount()).creditSat).toBe(10_000)
  })

  test('kill -9 of both, and PostgreSQL’s pid now belongs to another process: the next start works and leaves that process alone', async () => {
    await server.kill()
    const pidFile = join(server.dataDir, 'postgres', 'data', 'postmaster.pid')
    const [old, ...rest] = readFileSync(pidFile, 'utf8').split('\n')
    process.kill(Number(old), 'SIGKILL')
    await eventually(() => databaseProcesses().length === 0, 'PostgreSQL to be gone')
    const user = isRoot ? lookUpUser('postgres', 'nobody') : undefined
    const bystander = spawn('sleep', ['10000'], { ...user, stdio: 'ignore' })
    writeFileSync(pidFile, [bystander.pid, ...rest].join('\n'))
    await server.start()
    expect(await works()).toBe(true)
    await server.stop()
    expect(isRunning(bystander.pid ?? 0)).toBe(true)
    bystander.kill('SIGKILL')
    await server.start()
  })

  test('a MASTER_KEY other than the generated one: 78, PostgreSQL is stopped again, and the right one still works', async () => {
    await server.stop()
    await expectFault(
      new Server({ command: PROCESS, dataDir: server.dataDir, env: { MASTER_KEY: newMasterKey() } }),
      78,
      /^MASTER_KEY: not the key/,
    )
    expect(databaseProcesses()).toEqual([])
    await server.start()
    expect(await works()).toBe(true)
  })

  test.each(['operator.token', 'master.key'])(
    'an empty %s is refused as a secret: 78, and the file is left unchanged',
    async (name) => {
      const path = join(server.dataDir, name)
      const text = readFileSync(path)
      await server.stop()
      truncateSync(path)
      await expectFault(
        new Server({ command: PROCESS, dataDir: server.dataDir }),
        78,
        new RegExp(`${name}.* does not contain a complete secret`),
      )
      expect(statSync(path).size).toBe(0)
      writeFileSync(path, text)
      await server.start()
      expect(await works()).toBe(true)
    },
  )

  test('on an address that others can reach, without OPERATOR_TOKEN, there is no operator API', async () => {
    const env = { ...server.sharedStoreEnv, ROLE: 'api', HOST: '0.0.0.0', PUBLIC_URL: 'https://pay.example' }
    const open = await new Server({ command: PROCESS, env }).launch()
    await open.printed(/^boltyard ready https:\/\/pay\.example\n/m)
    const headers = { host: 'pay.example' }
    expect((await send(open.port, 'GET', '/operator/v1/accounts', { token: server.operatorToken, headers })).status).toBe(404)
    expect(existsSync(join(open.dataDir, 'operator.token'))).toBe(false)
    expect((await send(open.port, 'GET', '/v1/api-key', { token: key, headers })).status).toBe(200)
    await open.stop()
  })

  test('OPERATOR_TOKEN_FILE is read, and no environment contains the token', async () => {
    const file = join(temporaryDirectory(), 'token')
    const token = randomBytes(24).toString('hex')
    writeFileSync(file, `${token}\n`)
    const other = await startServer({
      command: PROCESS,
      env: { ...server.sharedStoreEnv, ROLE: 'api', OPERATOR_TOKEN_FILE: file },
    })
    expect((await send(other.port, 'GET', '/operator/v1/accounts', { token })).status).toBe(200)
    expect((await send(other.port, 'GET', '/operator/v1/accounts', { token: server.operatorToken })).status).toBe(401)
    await other.stop()
  })
})

describe.concurrent('a data directory', () => {
  test('security 27: with a path too long for a socket, spaces, commas and non-Latin letters works; its socket is never in another user’s directory', async () => {
    const root = temporaryDirectory()
    // Few characters but many bytes, because the limit for a socket's path is in bytes.
    const dataDir = join(root, '節点'.repeat(10), 'a, b c', 'data')
    const server = await startServer({ command: PROCESS, dataDir })
    removeAfterwards(server.store.host)
    expect(server.store.host.startsWith(root)).toBe(false)
    expect(modeOf(server.store.host)).toBe('700')
    const { key } = await server.newKey()
    const works = async (one: Server): Promise<boolean> => (await one.send('GET', '/v1/api-key', { token: key })).status === 200
    // A process with ROLE=api finds the socket, and so does a service that is restarted after being killed.
    const { host } = server.store
    const api = await startServer({ command: PROCESS, dataDir, env: { ROLE: 'api' } })
    expect(await works(api)).toBe(true)
    await api.stop()
    await server.restart('SIGKILL')
    expect([await works(server), server.store.host]).toEqual([true, host])
    await server.stop()
    expect(existsSync(host)).toBe(false)
    // Simulates that another user has created a link with the name of the directory. The service must not change the owner of its target.
    const theirs = temporaryDirectory()
    symlinkSync(theirs, host)
    removeAfterwards(host)
    await server.start()
    removeAfterwards(server.store.host)
    expect([await works(server), server.store.host === host, modeOf(theirs)]).toEqual([true, false, '711'])
    expect(statSync(theirs).uid).toBe(process.getuid?.())
  })

  test('with spaces and commas in a short path works', async () => {
    const server = await startServer({ command: PROCESS, dataDir: join(temporaryDirectory(), 'a, b c') })
    removeAfterwards(server.store.host)
    expect((await server.send('GET', '/readyz')).status).toBe(200)
  })

  test.skipIf(!isRoot)('of an unprivileged user is 0700, and everything in it belongs to that user', async () => {
    const nobody = lookUpUser('nobody')
    const root = temporaryDirectory()
    chownSync(root, nobody?.uid ?? 0, nobody?.gid ?? 0)
    const dataDir = join(root, 'data')
    const command = ['setpriv', `--reuid=${nobody?.uid}`, `--regid=${nobody?.gid}`, '--clear-groups', process.execPath, SERVER]
    const server = await startServer({ dataDir, command })
    expect(modeOf(dataDir)).toBe('700')
    const strange = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter(
      (path) => lstatSync(join(dataDir, path)).uid !== nobody?.uid,
    )
    expect(strange).toEqual([])
    expect((await server.send('GET', '/v1/api-key', { token: server.firstRun.apiKey })).status).toBe(200)
  })

  test.skipIf(!existsSync('/usr/bin/script'))('the first start in a terminal shows the key itself', async () => {
    const terminal = ['script', '-qefc', `exec '${process.execPath}' '${SERVER}'`, '/dev/null']
    const server = await startServer({ store: 'embedded', command: terminal })
    expect(server.stdout).toMatch(new RegExp(`^\\s*curl .*"Authorization: Bearer ${server.firstRun.apiKey}"`, 'm'))
    expect(server.stdout).toContain(server.firstRun.claimUrl)
    const [child] = readFileSync(`/proc/${server.child.pid}/task/${server.child.pid}/children`, 'utf8').split(' ')
    process.kill(Number(child), 'SIGTERM')
    expect((await server.exited).code).toBe(0)
  })

  test('PORT 0 chooses a free port, and the line says which', async () => {
    const server = await startServer({ command: PROCESS, store: 'embedded', env: { PORT: '0', HOST: 'localhost' } })
    expect(server.url).toMatch(/^http:\/\/localhost:[1-9]\d+$/)
    expect((await server.send('GET', '/healthz')).status).toBe(200)
    expect(server.stderr).toContain(`${server.url}/v1/nodes`)
  })
})
