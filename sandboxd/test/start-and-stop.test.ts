import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { nodeKeysOfSeed } from '../src/seed.ts'
import {
  basic,
  confText,
  Daemon,
  eventually,
  FULL,
  freePort,
  LIMITED,
  readText,
  send,
  startNetwork,
  TestHub,
  TestNode,
  temporaryDirectory,
} from './harness.ts'

const ABANDON = {
  words: `${'abandon '.repeat(11)}about`,
  nodeId: '03ae1ffd817e000a905ba53f6e90e5ed1b1cb04b45576f94d0522724be35f3e422',
}
const LEGAL = {
  words: 'legal winner thank year wave sausage worth useful legal winner thank yellow',
  nodeId: '024bdc24d5d26e582294929e65fbb8da1b48a2781fb8ea258982c890ba76460088',
}

const isClosed = (port: number): Promise<boolean> =>
  send(port, 'GET', '/getinfo').then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
  )

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')
const logOf = (dataDir: string): string => readText(join(dataDir, 'phoenix.log'))
const valueIn = (dataDir: string, key: string): string =>
  new RegExp(`^${key}=(.*)$`, 'm').exec(readText(join(dataDir, 'phoenix.conf')))?.[1] ?? ''
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

/** Starts a daemon without the files that the harness prepares. Resolves when the daemon reports that it is ready. */
async function firstRun(setup: {
  dataDir: string
  args?: string[]
  stdin?: string
  env?: Record<string, string>
}): Promise<{ daemon: Daemon; port: number }> {
  const port = await freePort()
  const daemon = new Daemon({
    args: [`--http-bind-port=${port}`, ...(setup.args ?? ['--agree-to-terms-of-service'])],
    env: { PHOENIX_DATADIR: setup.dataDir, ...setup.env },
    ...(setup.stdin === undefined ? {} : { stdin: setup.stdin }),
  })
  await daemon.printed(/listening on http/)
  return { daemon, port }
}

describe.concurrent('S12: the port is closed until the peer is connected', () => {
  /** Expects the port to be closed, and to stay closed after the daemon has retried its peer. */
  async function expectToWait(node: TestNode): Promise<void> {
    await eventually(() => /no lightning peer yet: /.test(logOf(node.dataDir)), 'the first try to fail')
    for (const until = Date.now() + 700; Date.now() < until; await pause(50)) expect(await isClosed(node.port)).toBe(true)
    expect(node.daemon.stdout).toMatch(/connecting to lightning peer\.\.\.\n$/)
  }

  async function expectToOpen(node: TestNode): Promise<void> {
    await node.daemon.printed(/connected to lightning peer\n[^\n]*listening on http/)
    expect((await node.get('/getinfo')).status).toBe(200)
  }

  test('S12: sandbox-peer=down in the file keeps the port closed, and the control that connects the peer opens it', async () => {
    const node = await new TestNode({ conf: { 'sandbox-peer': 'down' } }).launch()
    await expectToWait(node)
    expect((await node.control('peer', { peer: 'up' })).status).toBe(200)
    await expectToOpen(node)
  })

  test('S12: a peer that is down stays down across a restart, and the port stays closed', async () => {
    const node = await new TestNode().start()
    await node.control('peer', { peer: 'down' })
    await node.daemon.kill()
    await node.launch()
    await expectToWait(node)
    await node.control('peer', { peer: 'up' })
    await expectToOpen(node)
    await node.restart()
    expect((await node.get('/getinfo')).status).toBe(200)
  })

  test('S12: a node of a hub waits for the hub', async () => {
    const hub = new TestHub()
    hub.port = await freePort()
    const node = await new TestNode({ hub }).launch()
    await expectToWait(node)
    await hub.start()
    await expectToOpen(node)
  })

  test('S12: a hub that does not accept the token keeps the port closed', async () => {
    const hub = await new TestHub().start()
    const node = await new TestNode({ conf: { 'sandbox-hub': `wrong@127.0.0.1:${hub.port}` } }).launch()
    await expectToWait(node)
    expect(logOf(node.dataDir)).toContain('no lightning peer yet: the hub answered 401')
  })

  test('while it waits, SIGTERM ends it by its default action', async () => {
    const node = await new TestNode({ conf: { 'sandbox-peer': 'down' } }).launch()
    expect(await node.daemon.kill('SIGTERM')).toEqual({ code: null, signal: 'SIGTERM' })
  })

  test('once open it stays open when the peer is lost', async () => {
    const node = await new TestNode().start()
    await node.control('peer', { peer: 'down' })
    await node.daemon.printed(/disconnected from lightning peer/)
    expect((await node.get('/getinfo')).status).toBe(200)
    expect((await node.post('/createinvoice', { description: 'offline' })).status).toBe(200)
  })
})

describe.concurrent('existing files', () => {
  test('S13: seed.dat and phoenix.conf are used and left unchanged, without a prompt', async () => {
    const node = new TestNode({ words: ABANDON.words })
    const files = ['seed.dat', 'phoenix.conf'].map((name) => join(node.dataDir, name))
    const before = files.map(readText)
    await node.start()
    expect((await node.get('/getinfo', FULL)).json().nodeId).toBe(ABANDON.nodeId)
    expect((await node.get('/getinfo', LIMITED)).status).toBe(200)
    expect((await node.get('/getinfo', 'another')).status).toBe(401)
    expect(node.daemon.stdout).not.toMatch(/I understand|Press any key|Generating/)
    expect(files.map(readText)).toEqual(before)
  })

  test.each([
    { title: 'no secret', given: [] },
    { title: 'the full password', given: ['http-password'] },
    { title: 'the limited password and the webhook secret', given: ['http-password-limited-access', 'webhook-secret'] },
    { title: 'both passwords', given: ['http-password', 'http-password-limited-access'] },
  ])('S14: with $title given, the other secrets are made as 64 hex characters, appended, and used', async ({ given }) => {
    const dataDir = temporaryDirectory()
    const confPath = join(dataDir, 'phoenix.conf')
    const before = confText(Object.fromEntries(given.map((key) => [key, `given-${key}`])))
    if (given.length > 0) writeFileSync(confPath, before)
    const { daemon, port } = await firstRun({ dataDir })
    const after = readText(confPath)
    expect(after.startsWith(before)).toBe(true)
    const keys = ['http-password', 'http-password-limited-access', 'webhook-secret']
    const made = keys.filter((key) => !given.includes(key))
    for (const key of made) {
      expect(after.slice(before.length)).toContain(`\n${key}=`)
      expect(valueIn(dataDir, key)).toMatch(/^[0-9a-f]{64}$/)
    }
    for (const key of given) expect(valueIn(dataDir, key)).toBe(`given-${key}`)
    expect(new Set(keys.map((key) => valueIn(dataDir, key))).size).toBe(3)
    for (const key of ['http-password', 'http-password-limited-access']) {
      const headers = { authorization: basic(valueIn(dataDir, key)) }
      expect((await send(port, 'GET', '/getinfo', { headers })).status).toBe(200)
    }
    await daemon.kill('SIGTERM')
    await (await firstRun({ dataDir })).daemon.kill()
    expect(readText(confPath)).toBe(after)
  })

  test.each([ABANDON, LEGAL])('S15: the words "$words" are the node $nodeId', async ({ words, nodeId }) => {
    const node = await new TestNode({ words }).start()
    expect((await node.get('/getinfo')).json().nodeId).toBe(nodeId)
  })

  test('S15: the raw seed in lightning-kmp’s test yields the node id there', () => {
    const seed = Buffer.from('17b086b228025fa8f4416324b6ba2ec36e68570ae2fc3d392520969f2a9d0c1501', 'hex')
    expect(nodeKeysOfSeed(seed).nodeId).toBe('0392ea6e914abcee840dc8a763b02ba5ac47e0ac3fadcd5294f9516fe353882522')
  })

  test('S15: anything between the words in the file is ignored', async () => {
    const node = await new TestNode({ words: `${LEGAL.words.split(' ').join('\r\n ')}\n` }).start()
    expect(node.nodeId).toBe(LEGAL.nodeId)
  })
})

describe.concurrent('where the seed comes from', () => {
  test.each([
    { name: '--seed', args: [`--seed=${LEGAL.words}`], env: {} },
    { name: 'PHOENIX_SEED', args: [], env: { PHOENIX_SEED: LEGAL.words } },
    { name: '--seed over PHOENIX_SEED', args: ['--seed', LEGAL.words], env: { PHOENIX_SEED: ABANDON.words } },
  ])('$name gives the words; no seed file is read, written or asked about', async ({ args, env }) => {
    const dataDir = temporaryDirectory()
    const { daemon } = await firstRun({ dataDir, args, env })
    expect(daemon.stdout).toContain(`nodeid: ${LEGAL.nodeId}\n`)
    expect(existsSync(join(dataDir, 'seed.dat'))).toBe(false)
  })

  test('--seed need not be BIP39, as in phoenixd', async () => {
    const { daemon } = await firstRun({ dataDir: temporaryDirectory(), args: ['--seed=no such words'] })
    expect(daemon.stdout).toMatch(/nodeid: 0[23][0-9a-f]{64}\n/)
  })

  test('--seed-path names the file, whether it exists or has to be created', async () => {
    const elsewhere = join(temporaryDirectory(), 'words')
    const dataDir = temporaryDirectory()
    const made = await firstRun({ dataDir, args: ['--agree-to-terms-of-service', `--seed-path=${elsewhere}`] })
    const nodeId = /nodeid: (\w+)/.exec(made.daemon.stdout)?.[1]
    expect(readText(elsewhere)).toMatch(/^([a-z]+ ){11}[a-z]+$/)
    expect(modeOf(elsewhere)).toBe('600')
    await made.daemon.kill()
    const found = await firstRun({ dataDir: temporaryDirectory(), args: [`--seed-path=${elsewhere}`] })
    expect(found.daemon.stdout).toContain(`nodeid: ${nodeId}\n`)
    expect(existsSync(join(dataDir, 'seed.dat'))).toBe(false)
  })
})

describe('stopping and starting again', () => {
  let hub: TestHub
  let payer: TestNode
  let payee: TestNode

  beforeAll(async () => {
    ;({ hub, payer, payee } = await startNetwork())
    for (const amountSat of [10, 20, 30]) await payer.pay((await payee.invoice({ amountSat })).serialized)
    await payer.pay((await payee.invoice({ amountSat: 99 })).serialized, { amountSat: 1 })
  })

  const everythingOf = async (node: TestNode): Promise<unknown[]> =>
    Promise.all(
      ['/getbalance', '/payments/incoming?all=true&limit=-1', '/payments/outgoing?all=true&limit=-1', '/getlnaddress'].map(
        async (path) => (await node.get(path)).text,
      ),
    )
  const identityOf = async (node: TestNode): Promise<unknown> => {
    const { nodeId, channels } = (await node.get('/getinfo')).json()
    return { nodeId, channels }
  }

  test.each([
    { signal: 'SIGTERM' as const, exit: { code: 0, signal: null } },
    { signal: 'SIGINT' as const, exit: { code: 0, signal: null } },
    { signal: 'SIGKILL' as const, exit: { code: null, signal: 'SIGKILL' } },
  ])('S16: after $signal a restart shows the same node, balance and payments', async ({ signal, exit }) => {
    for (const node of [payer, payee]) {
      const before = [await identityOf(node), await everythingOf(node)]
      const startedAt = Date.now()
      expect(await node.daemon.kill(signal)).toEqual(exit)
      expect(Date.now() - startedAt).toBeLessThan(40_000)
      if (exit.code === 0) expect(node.daemon.stdout).toMatch(/ shutting down\.\.\.\n$/)
      await node.start()
      expect([await identityOf(node), await everythingOf(node)]).toEqual(before)
    }
    expect((await payer.balance()).balanceSat).toBeGreaterThan(0)
    expect((await payee.balance()).balanceSat).toBe(60)
  })

  test('S16: connected clients cannot keep it from exiting with 0', async () => {
    const node = await new TestNode({ hub }).start()
    await hub.fund(node, 1000)
    const socket = new WebSocket(`ws://127.0.0.1:${node.port}/websocket`, { headers: { authorization: basic(FULL) } })
    await new Promise((resolve) => socket.once('open', resolve))
    const agent = new Agent({ keepAlive: true })
    await new Promise((resolve) => {
      get({ port: node.port, path: '/nothing', agent }, (response) => response.resume().once('end', resolve))
    })
    await node.control('payments', { payments: 'hold' })
    const invoice = await payee.invoice({ amountSat: 10 })
    const held = node.pay(invoice.serialized).catch((error: Error) => error)
    await eventually(async () => (await node.state()).pendingMsat > 0, 'the payment to be under way')
    const startedAt = Date.now()
    expect(await node.daemon.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    expect(Date.now() - startedAt).toBeLessThan(40_000)
    expect(await held).toBeInstanceOf(Error)
    agent.destroy()
  })
})

describe.concurrent('what it prints', () => {
  const BANNER = [
    /^datadir: \//,
    /^chain: Regtest$/,
    /^autoLiquidity: 2000000 sat$/,
    /^maxFeeCredit: 50000 sat$/,
    /^nodeid: 0[23][0-9a-f]{64}$/,
    /^offer: lno1[a-z0-9]+$/,
    /^connecting to lightning peer\.\.\.$/,
    /^connected to lightning peer$/,
    /^listening on http:\/\/127\.0\.0\.1:\d+$/,
  ]

  test('S17: the lines of phoenixd in its order, each after a timestamp, and "listening on" last', async () => {
    const node = await new TestNode().start()
    expect((await node.get('/getinfo')).status).toBe(200)
    const lines = linesOf(node.daemon.stdout)
    for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d /)
    const texts = lines.map((line) => line.slice(20))
    const places = BANNER.map((pattern) => texts.findIndex((text) => pattern.test(text)))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(new Set([-1, ...places]).size).toBe(BANNER.length + 1)
    expect(texts.at(-1)).toBe(`listening on http://127.0.0.1:${node.port}`)
    expect(texts[0]).toBe(`datadir: ${node.dataDir}`)
    expect(texts).toContain(`offer: ${(await node.get('/getoffer')).text}`)
    expect(node.daemon.stderr).toBe('')
  })

  test('S17: the printed address is the configured one', async () => {
    const node = await new TestNode({ args: ['--http-bind-ip=127.0.0.3'] }).start()
    expect(node.daemon.stdout).toMatch(new RegExp(`listening on http://127\\.0\\.0\\.3:${node.port}\\n$`))
    expect(await isClosed(node.port)).toBe(true)
  })

  test('--silent prints nothing, but phoenix.log has all lines', async () => {
    const node = new TestNode()
    node.port = await freePort()
    const daemon = new Daemon({
      args: ['--silent', `--http-bind-port=${node.port}`],
      env: { PHOENIX_DATADIR: node.dataDir },
    })
    await eventually(async () => (await node.get('/getinfo')).status === 200, 'the node to answer')
    expect(await daemon.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    expect([daemon.stdout, daemon.stderr]).toEqual(['', ''])
    expect(logOf(node.dataDir)).toMatch(/listening on http/)
  })

  test.each(['--help', '-h'])('%s explains the options that are not hidden, and starts nothing', async (flag) => {
    const daemon = new Daemon({ args: [flag] })
    expect(await daemon.exited).toEqual({ code: 0, signal: null })
    for (const name of ['chain', 'http-bind-ip', 'http-bind-port', 'http-password', 'webhook', 'seed-path', 'auto-liquidity']) {
      expect(daemon.stdout).toContain(`--${name}=`)
    }
    expect(daemon.stdout).not.toMatch(/agree-to-terms|--seed=|max-absolute-fee|max-relative-fee-percent|polling-interval/)
    expect(daemon.stderr).toBe('')
  })

  test.each(['--version', '-v'])('%s prints the version that getinfo returns', async (flag) => {
    const daemon = new Daemon({ args: [flag] })
    expect(await daemon.exited).toEqual({ code: 0, signal: null })
    const node = await new TestNode().start()
    expect(daemon.stdout).toBe(`sandboxd version ${(await node.get('/getinfo')).json().version}\n`)
    expect(daemon.stdout).toMatch(/ 0\.8\.0-\w{7}\n$/)
  })
})

describe.concurrent('the data directory', () => {
  test('S18: everything is in PHOENIX_DATADIR, which is created if needed and readable only by its owner', async () => {
    const dataDir = join(temporaryDirectory(), 'made', 'here')
    const { daemon } = await firstRun({ dataDir })
    const nodeId = /nodeid: (\w+)/.exec(daemon.stdout)?.[1] ?? ''
    const names = readdirSync(dataDir)
    expect(names).toEqual(expect.arrayContaining(['phoenix.conf', 'phoenix.log', 'seed.dat']))
    expect(names).toContain(`phoenix.regtest.${nodeId.slice(0, 6)}.db`)
    expect(modeOf(dataDir)).toBe('700')
    expect(names.map((name) => [name, modeOf(join(dataDir, name))])).toEqual(names.map((name) => [name, '600']))
    expect(readText(join(dataDir, 'seed.dat'))).toMatch(/^([a-z]+ ){11}[a-z]+$/)
  })

  test('S18: without PHOENIX_DATADIR, everything is in ~/.phoenix', async () => {
    const home = temporaryDirectory()
    const port = await freePort()
    const daemon = new Daemon({ args: ['--agree-to-terms-of-service', `--http-bind-port=${port}`], env: { HOME: home } })
    await daemon.printed(/listening on http/)
    expect(daemon.stdout).toContain(`datadir: ${join(home, '.phoenix')}\n`)
    expect(readdirSync(join(home, '.phoenix'))).toContain('seed.dat')
  })

  test('an export is readable only by its owner, too', async () => {
    const node = await new TestNode().start()
    const path = /exported to (.*)$/.exec((await node.post('/export')).text)?.[1] ?? ''
    expect([modeOf(path), modeOf(join(node.dataDir, 'exports'))]).toEqual(['600', '700'])
  })
})

describe.concurrent('a port that is taken', () => {
  test('S19: one line on stderr, and exit code 0 although nothing runs', async () => {
    const node = new TestNode()
    node.port = await freePort()
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(node.port, '127.0.0.1', resolve))
    await node.launch()
    expect(await node.daemon.exited).toEqual({ code: 0, signal: null })
    const [line, ...more] = linesOf(node.daemon.stderr)
    expect(line).toMatch(new RegExp(`cannot listen on http://127\\.0\\.0\\.1:${node.port}: .*address already in use`))
    expect(more).toEqual([])
    expect(node.daemon.stdout).toMatch(/connected to lightning peer\n$/)
    other.close()
  })
})

describe.concurrent('the questions of a first run', () => {
  const QUESTION = /Please confirm by typing \[I understand\]/g

  test('"I understand" twice and any key once, and it starts', async () => {
    const { daemon } = await firstRun({ dataDir: temporaryDirectory(), args: [], stdin: 'I understand\nI understand\n\n' })
    expect(daemon.stdout.match(QUESTION)).toHaveLength(2)
    expect(daemon.stdout.match(/Press any key to continue\.\.\./g)).toHaveLength(1)
    expect(daemon.stdout.indexOf('Press any key')).toBeLessThan(daemon.stdout.indexOf('nodeid: '))
  })

  test('after any other answer, the question is repeated', async () => {
    const stdin = 'yes\nI UNDERSTAND\nI understand\nI understand\n\n'
    const { daemon } = await firstRun({ dataDir: temporaryDirectory(), args: [], stdin })
    expect(daemon.stdout.match(/Please type those exact words/g)).toHaveLength(2)
    expect(daemon.stdout.match(QUESTION)).toHaveLength(2)
  })

  test.each([
    { name: 'nothing', stdin: '' },
    { name: 'one answer', stdin: 'I understand\n' },
    { name: 'no key', stdin: 'I understand\nI understand\n' },
    { name: 'only wrong answers', stdin: 'no\nno\nno\n' },
  ])('when the input ends after $name it goes through all of them and starts', async ({ stdin }) => {
    const { daemon } = await firstRun({ dataDir: temporaryDirectory(), args: [], stdin })
    expect(daemon.stdout.match(QUESTION)).toHaveLength(2)
    expect(daemon.stdout.match(/Press any key to continue\.\.\./g)).toHaveLength(1)
  })

  test('come after the secrets and the seed are generated, with phoenixd’s text', async () => {
    const { daemon } = await firstRun({ dataDir: temporaryDirectory(), args: [], stdin: '' })
    expect(daemon.stdout.match(/^Generating .*$/gm)).toEqual([
      'Generating default api password...done',
      'Generating limited access api password...done',
      'Generating webhook secret...done',
      'Generating sandbox control token...done',
      'Generating new seed...done',
    ])
    expect(daemon.stdout.indexOf('Generating new seed')).toBeLessThan(daemon.stdout.search(QUESTION))
  })

  test.each([
    { name: '--agree-to-terms-of-service', args: ['--agree-to-terms-of-service'], conf: '' },
    { name: 'agree-to-terms-of-service=true in the file', args: [], conf: 'agree-to-terms-of-service=true' },
  ])('$name answers them', async ({ args, conf }) => {
    const dataDir = join(temporaryDirectory(), 'data')
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'phoenix.conf'), conf)
    const { daemon } = await firstRun({ dataDir, args })
    expect(daemon.stdout).not.toMatch(QUESTION)
  })
})
