import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { Wire } from '../../sdk/test/wire.ts'
import { callNode, catalogue } from '../../server/test/support/nodes.ts'
import { type Server, startServer } from '../../server/test/support/server.ts'
import { Customer, inHome, onTerminal, ROOMY } from './harness.ts'

let server: Server
let ada: Customer
let shop: { node: any; credentials: any }

const NODE_FIELDS = [
  'createdAt',
  'endpointUrl',
  'failureMessage',
  'id',
  'name',
  'status',
  'updateCompletedAt',
  'updateStatus',
  'updatedAt',
]
const SECRETS = {
  seed: expect.stringMatching(/^(\w+ ){11}\w+$/),
  password: expect.stringMatching(/^[0-9a-f]{64}$/),
  restrictedPassword: expect.stringMatching(/^[0-9a-f]{64}$/),
}

beforeAll(async () => {
  const versions = catalogue([{ version: '0.8.0' }, { version: '0.8.1' }])
  server = await startServer({ env: { ...ROOMY, NODE_VERSIONS: versions } })
  ada = await Customer.of(server)
  shop = await ada.gets(['nodes', 'create', '--name', 'shop', '--wait'])
})

describe('nodes create', () => {
  test('piped: one document with the node, ready after --wait, and its working credentials', async () => {
    expect(Object.keys(shop)).toEqual(['node', 'credentials'])
    expect(Object.keys(shop.node).sort()).toEqual(NODE_FIELDS)
    expect(shop).toMatchObject({ node: { name: 'shop', status: 'ready' }, credentials: SECRETS })
    expect((await callNode(shop.node, shop.credentials.password, 'GET', '/getinfo')).status).toBe(200)
  })

  test('all options reach the node', async () => {
    const { code, json } = await ada.run([
      'nodes',
      'create',
      '--name',
      'grand',
      '--auto-liquidity',
      '10m',
      '--access-mode',
      'full',
    ])
    expect([code, json().node.name, json().node.status]).toEqual([0, 'grand', 'provisioning'])
    await ada.gets(['nodes', 'delete', json().node.id, '--yes'])
  })

  test('with a credentials file, they are only in that file, and only its owner can read it', async () => {
    const file = inHome('file.json')
    const { code, stdout, stderr, json } = await ada.run(['nodes', 'create', '--credentials-file', file])
    const kept = JSON.parse(readFileSync(file, 'utf8'))
    expect(code).toBe(0)
    expect(kept).toEqual({ nodeId: json().node.id, endpointUrl: json().node.endpointUrl, ...SECRETS })
    expect(json()).toEqual({ node: expect.anything(), credentialsFile: file })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    for (const secret of [kept.seed, kept.password, kept.restrictedPassword]) expect(stdout + stderr).not.toContain(secret)
    await ada.gets(['nodes', 'delete', kept.nodeId, '--yes'])
  })

  test.each([
    ['already exists', 'there.json', (path: string) => writeFileSync(path, '{"seed":"the only copy"}')],
    ['exists and is something else', 'notes.txt', (path: string) => writeFileSync(path, 'notes')],
    ['is in a directory that does not exist', 'nowhere/file.json', () => undefined],
    ['is a directory', 'directory', (path: string) => mkdirSync(path)],
  ])('a file that %s: refused before anything is created, and left unchanged', async (_, name, make) => {
    const path = inHome(name)
    make(path)
    const before = existsSync(path) && statSync(path).isFile() ? readFileSync(path, 'utf8') : undefined
    const wire = await new Wire(server.url).open()
    const { code, stdout, error } = await ada.via(wire.baseUrl).run(['nodes', 'create', '--credentials-file', path])
    expect([code, stdout, error().code]).toEqual([2, '', 'usage'])
    expect(wire.seen).toEqual([])
    if (before !== undefined) expect(readFileSync(path, 'utf8')).toBe(before)
  })

  test('a rejected request leaves no file behind', async () => {
    const file = inHome('refused.json')
    expect((await ada.run(['nodes', 'create', '--name', 'much too long for a name', '--credentials-file', file])).code).toBe(2)
    expect(existsSync(file)).toBe(false)
  })

  test('a lost response is retried with the same key: one node', async () => {
    const wire = await new Wire(server.url).open()
    wire.faults = ['lose answer']
    const before = (await ada.gets(['nodes', 'list'])).nodes.length
    const { node, credentials } = await ada.via(wire.baseUrl).gets(['nodes', 'create'])
    expect(credentials).toEqual(SECRETS)
    expect(new Set(wire.seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    expect((await ada.gets(['nodes', 'list'])).nodes).toHaveLength(before + 1)
    await ada.gets(['nodes', 'delete', node.id, '--yes'])
  })

  test('killed after the node was created: the same command completes the file without a second node', async () => {
    const file = inHome('killed.json')
    const wire = await new Wire(server.url).open()
    wire.faults = ['lose answer', 'swallow']
    const before = (await ada.gets(['nodes', 'list'])).nodes.length
    const { child, ended } = ada.via(wire.baseUrl).start(['nodes', 'create', '--credentials-file', file])
    while (wire.seen.length < 2) await new Promise((resolve) => setTimeout(resolve, 20))
    child.kill('SIGKILL')
    await ended
    expect(Object.keys(JSON.parse(readFileSync(file, 'utf8')))).toEqual(['idempotencyKey', 'account', 'startedAt'])
    const { node } = await ada.gets(['nodes', 'create', '--credentials-file', file])
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ nodeId: node.id, endpointUrl: node.endpointUrl, ...SECRETS })
    expect((await ada.gets(['nodes', 'list'])).nodes).toHaveLength(before + 1)
    expect((await ada.run(['nodes', 'create', '--credentials-file', file])).code).toBe(2)
    await ada.gets(['nodes', 'delete', node.id, '--yes'])
  })

  test('if the file cannot be written any more, the error says how to get the credentials', async () => {
    const [directory, away] = [inHome('volume'), inHome('volume-away')]
    mkdirSync(directory)
    const file = `${directory}/node.json`
    const wire = await new Wire(server.url).open()
    let resume = (): void => undefined
    wire.ready = new Promise<void>((resolve) => {
      resume = resolve
    })
    const { ended } = ada.via(wire.baseUrl).start(['nodes', 'create', '--credentials-file', file])
    while (wire.seen.length < 1) await new Promise((resolve) => setTimeout(resolve, 20))
    renameSync(directory, away)
    resume()
    const { code, error, stderr } = await ended
    expect([code, error().code, error().next]).toEqual([
      1,
      'output_failed',
      expect.stringContaining(`--credentials-file ${file}`),
    ])
    renameSync(away, directory)
    expect(stderr).not.toContain(JSON.parse(readFileSync(file, 'utf8')).idempotencyKey)
    const { node } = await ada.gets(['nodes', 'create', '--credentials-file', file])
    expect(node.id).toBe(error().nodeId)
    await ada.gets(['nodes', 'delete', node.id, '--yes'])
  })

  test('an attempt that is a day old, from another key, or world-readable is not resumed; a rejected request does not delete it', async () => {
    const wire = await new Wire(server.url).open()
    const cut = { status: 503, body: '{"error":{"code":"service_unavailable","message":"x"}}' }
    wire.faults = [cut, cut, cut, cut]
    const file = inHome('attempt.json')
    const create = ['nodes', 'create', '--credentials-file', file, '--base-url', wire.baseUrl]
    expect((await ada.run(create)).error().outcome).toBe('unknown')
    const left = JSON.parse(readFileSync(file, 'utf8'))
    const bob = await Customer.of(server)
    expect((await bob.run(create)).error().message).toContain('with another API key')
    expect((await ada.run([...create, '--idempotency-key', 'other'])).error().message).toContain('with another idempotency key')
    writeFileSync(file, JSON.stringify({ ...left, startedAt: left.startedAt - 86_400 }))
    expect((await ada.run(create)).error().message).toContain('more than 23 hours ago')
    writeFileSync(file, JSON.stringify({ ...left, startedAt: left.startedAt + 86_400 }))
    expect((await ada.run(create)).error().message).toContain('with a wrong clock')
    writeFileSync(file, JSON.stringify(left))
    chmodSync(file, 0o644)
    expect((await ada.run(create)).error().next).toBe(`chmod 600 ${file}`)
    chmodSync(file, 0o600)
    wire.faults = [cut, cut, cut, cut]
    const endsAt = new Date((left.startedAt + 23 * 3_600) * 1000).toISOString().replace('.000', '')
    expect((await ada.run(create)).error().next).toContain(`or create it if it was not, run this before ${endsAt} (`)
    expect((await ada.run([...create, '--name', 'much too long for a name'])).code).toBe(2)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(left)
    const { node } = await ada.gets(create)
    await ada.gets(['nodes', 'delete', node.id, '--yes'])
  })

  test('the advice after an unknown outcome with a given key counts from its first use', async () => {
    const wire = await new Wire(server.url).open()
    wire.faults = Array(4).fill({ status: 503 })
    const { error } = await ada.via(wire.baseUrl).run(['nodes', 'create', '--idempotency-key', 'mine'])
    expect(error().next).toContain('run this within 24 hours of the first attempt with this key: boltyard nodes create')
  })

  test('if stdout is not read, stderr says how to get the credentials', async () => {
    const { child, ended } = ada.start(['nodes', 'create', '--name', 'unread'])
    child.stdout?.destroy()
    const { code, stderr } = await ended
    const [, key = ''] = /--idempotency-key (\S+)/.exec(stderr) ?? []
    expect(code).toBe(1)
    const { node, credentials } = await ada.gets(['nodes', 'create', '--name', 'unread', '--idempotency-key', key])
    expect(credentials).toEqual(SECRETS)
    await ada.gets(['nodes', 'delete', node.id, '--yes'])
  })
})

describe('piped, the life of a node', () => {
  test('list, get, rename, stop, start, restart, updates, update, wait, delete', async () => {
    const { node } = await ada.gets(['nodes', 'create', '--wait'])
    const id = node.id
    expect((await ada.gets(['nodes', 'list'])).nodes.map((one: any) => one.id)).toContain(id)
    expect(await ada.gets(['nodes', 'get', id])).toMatchObject({ id, status: 'ready' })
    expect(await ada.gets(['nodes', 'rename', id, 'till 2'])).toMatchObject({ id, name: 'till 2' })
    expect(await ada.gets(['nodes', 'stop', id])).toMatchObject({ status: 'stopped' })
    expect(await ada.run(['nodes', 'wait', id])).toMatchObject({ code: 8, stdout: '' })
    expect(await ada.gets(['nodes', 'start', id])).toMatchObject({ status: 'ready' })
    expect(await ada.gets(['nodes', 'restart', id])).toMatchObject({ status: 'ready' })
    expect(await ada.gets(['nodes', 'updates', id])).toMatchObject({ updateAvailable: false })
    expect((await ada.run(['nodes', 'update', id])).error().code).toBe('no_update_available')
    expect(await ada.gets(['nodes', 'wait', id, '--timeout', '120'])).toMatchObject({ status: 'ready' })
    expect((await ada.run(['nodes', 'delete', id])).error()).toMatchObject({
      code: 'usage',
      next: `boltyard nodes delete ${id} --yes`,
    })
    expect(await ada.gets(['nodes', 'delete', id, '--yes'])).toEqual({ id, deleted: true })
    expect((await ada.run(['nodes', 'get', id])).code).toBe(5)
  })

  test('a name that looks like an option comes after --', async () => {
    expect(await ada.gets(['nodes', 'rename', '--', shop.node.id, '--wait'])).toMatchObject({ name: '--wait' })
    await ada.gets(['nodes', 'rename', shop.node.id, 'shop'])
  })

  test('a node with funds is only deleted with --force', async () => {
    const { node } = await ada.gets(['nodes', 'create', '--wait'])
    await ada.gets(['sandbox', 'fund', node.id, '5000'], { env: { OPERATOR_TOKEN: server.operatorToken } })
    const { code, error } = await ada.run(['nodes', 'delete', node.id, '--yes'])
    expect([code, error().code]).toEqual([8, 'node_has_funds'])
    expect(error().next).toContain('--force')
    expect(await ada.gets(['nodes', 'delete', node.id, '--yes', '--force'])).toMatchObject({ deleted: true })
  })

  test('the key may come from a file, and the address from an option', async () => {
    writeFileSync(inHome('key'), `${ada.env.SERVICE_API_KEY}\n`)
    const env = { SERVICE_API_KEY: undefined, SERVICE_BASE_URL: undefined }
    const { nodes } = await ada.gets(['nodes', 'list', '--api-key-file', inHome('key'), '--base-url', `${server.url}/v1/`], {
      env,
    })
    expect(nodes.map((one: any) => one.id)).toContain(shop.node.id)
  })

  test('a reader that closes the pipe early is not an error', async () => {
    const { child, ended } = ada.start(['nodes', 'list'])
    child.stdout?.destroy()
    expect(await ended).toMatchObject({ code: 0, stderr: '' })
  })
})

onTerminal('nodes', () => {
  test('an account without nodes is told how to create one', async () => {
    const bob = await Customer.of(server)
    expect((await bob.sees(['nodes', 'list'])).plain).toBe('No nodes yet. Create one: boltyard nodes create\n')
  })

  test('list is a table, get a sheet, --json JSON', async () => {
    const list = await ada.sees(['nodes', 'list'])
    expect(list.plain).toMatch(/^ID +NAME +STATUS +CREATED +ENDPOINT\n/)
    expect(list.plain).toMatch(new RegExp(`^${shop.node.id}  shop +ready +.* ago +${shop.node.endpointUrl}$`, 'm'))
    expect(list.screen).toContain('\x1b[32mready\x1b[0m')
    expect((await ada.sees(['nodes', 'get', shop.node.id])).plain).toMatch(
      /^id +node_\w+\nname +shop\nstatus +ready\nendpoint +http/,
    )
    expect(JSON.parse((await ada.sees(['nodes', 'get', shop.node.id, '--json'])).plain)).toMatchObject({ id: shop.node.id })
    expect((await ada.sees(['nodes', 'list'], { env: { NO_COLOR: '1' } })).screen).not.toContain('\x1b')
  })

  test('create shows the secrets once, before the wait, and says to store them; the spinner leaves nothing behind', async () => {
    // Without the hub, no node becomes ready, so --wait has to wait.
    process.kill(server.hubPid, 'SIGSTOP')
    const terminal = ada.terminal(['nodes', 'create', '--name', 'seen', '--wait'])
    await terminal.shows(/Waiting for node_/).finally(() => process.kill(server.hubPid, 'SIGCONT'))
    expect(await terminal.exited).toBe(0)
    const { plain, screen } = terminal
    expect(plain).toMatch(
      /Store these now\. They will not be shown again\.\nrecovery words +(\w+ ){11}\w+\npassword +[0-9a-f]{64}\nrestricted +[0-9a-f]{64}\n/,
    )
    expect(plain.indexOf('Store these')).toBeLessThan(plain.indexOf('is ready.'))
    expect(screen).toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] Waiting for node_/)
    expect(screen.lastIndexOf('\r\x1b[K')).toBeGreaterThan(screen.search(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏](?!.*[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏])/s))
  })

  test('create with a file shows the path, not the secrets', async () => {
    const { code, plain } = await ada.sees(['nodes', 'create', '--name', 'hidden', '--credentials-file', inHome('hidden.json')])
    const { seed, password } = JSON.parse(readFileSync(inHome('hidden.json'), 'utf8'))
    expect(code).toBe(0)
    expect(plain).toContain(`Its recovery words and passwords are in ${inHome('hidden.json')}.`)
    expect(plain).not.toMatch(new RegExp(`${seed}|${password}`))
  })

  test('rename, stop, start, restart, updates, wait each show the node', async () => {
    const id = shop.node.id
    expect((await ada.sees(['nodes', 'rename', id, 'shop'])).plain).toMatch(/name +shop\n/)
    expect((await ada.sees(['nodes', 'stop', id])).plain).toMatch(/status +stopped\n/)
    expect((await ada.sees(['nodes', 'start', id])).plain).toMatch(/status +ready\n/)
    expect((await ada.sees(['nodes', 'restart', id])).plain).toMatch(/status +ready\n/)
    expect((await ada.sees(['nodes', 'updates', id])).plain).toMatch(
      /^running +0\.8\.\d.*\nlatest +0\.8\.1 \(no update available\)\n$/,
    )
    expect((await ada.sees(['nodes', 'update', id])).code).toBe(8)
    expect((await ada.sees(['nodes', 'wait', id])).plain).toMatch(/status +ready\n/)
  })

  test('delete asks for the name; anything else deletes nothing', async () => {
    const { node } = await ada.gets(['nodes', 'create', '--name', 'brief'])
    const hesitant = ada.terminal(['nodes', 'delete', node.id])
    await hesitant.shows(/Type the node’s name to delete it \(brief\): /)
    hesitant.type('yes\r')
    expect(await hesitant.exited).toBe(2)
    expect(hesitant.plain).toContain('Nothing was deleted.')
    const gone = ada.terminal(['nodes', 'delete', node.id])
    await gone.shows(/Type the node’s name/)
    gone.type('\x04')
    expect(await gone.exited).toBe(2)
    const frightened = ada.terminal(['nodes', 'delete', node.id])
    await frightened.shows(/Type the node’s name/)
    frightened.type('\x03')
    expect(await frightened.exited).toBe(130)
    expect(await ada.gets(['nodes', 'get', node.id])).toMatchObject({ name: 'brief' })
    const sure = ada.terminal(['nodes', 'delete', node.id])
    await sure.shows(/Type the node’s name/)
    sure.type('brief\r')
    expect(await sure.exited).toBe(0)
    expect(sure.plain).toContain(`Deleted ${node.id}.`)
    expect((await ada.run(['nodes', 'get', node.id])).code).toBe(5)
  })

  test('piped output is JSON even if stderr is a terminal', async () => {
    await ada.sees(['nodes', 'list'], {}, `> ${inHome('list.json')}`)
    expect(JSON.parse(readFileSync(inHome('list.json'), 'utf8')).nodes).toEqual(expect.any(Array))
  })
})

describe('an update', () => {
  test('piped with --wait, and what a terminal shows of it', async () => {
    const older = catalogue([{ version: '0.8.0' }])
    const both = catalogue([{ version: '0.8.0' }, { version: '0.8.1' }])
    const second = await startServer({ env: { ...ROOMY, NODE_VERSIONS: older } })
    const bob = await Customer.of(second)
    const { node } = await bob.gets(['nodes', 'create', '--wait'])
    await second.restart('SIGTERM', { NODE_VERSIONS: both })
    expect(await bob.gets(['nodes', 'updates', node.id])).toMatchObject({ updateAvailable: true, latestVersion: '0.8.1' })
    expect(await bob.gets(['nodes', 'update', node.id, '--to', '0.8.1', '--wait'])).toMatchObject({
      updateStatus: 'updated',
      status: 'ready',
    })
  })
})
