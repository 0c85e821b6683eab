import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { confText, Daemon, freePort, readText, TestHub, TestNode, temporaryDirectory } from './harness.ts'

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')

/** Expects a failure with one line on stderr, without a stack trace. */
async function expectFault(daemon: Daemon, says: RegExp, code: number): Promise<void> {
  const started = daemon.printed(/listening on http/).then(
    () => 'it started',
    () => daemon.exited,
  )
  const end = await Promise.race([daemon.exited, started])
  await daemon.kill()
  expect(end).toEqual({ code, signal: null })
  expect(linesOf(daemon.stderr)).toEqual([expect.stringMatching(says)])
  expect(daemon.stderr).not.toMatch(/^\s+at /m)
  expect(daemon.stdout).not.toMatch(/^\s+at /m)
  expect(daemon.stdout).not.toContain('listening on')
}

const startIn = (dataDir: string, args: string[] = ['--http-bind-port=0']): Daemon =>
  new Daemon({ args, env: { PHOENIX_DATADIR: dataDir } })

const journalLine = (json: string): string => `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`
const journalPath = (node: TestNode): string => join(node.dataDir, `phoenix.regtest.${node.nodeId.slice(0, 6)}.db`)

/** A stopped node with an invoice in its journal. */
async function usedNode(): Promise<TestNode> {
  const node = await new TestNode().start()
  await node.invoice({ amountSat: 1 })
  await node.daemon.kill()
  return node
}

describe.concurrent('a seed file that cannot be used', () => {
  test.each([
    { title: 'an invalid word', text: `${'abandon '.repeat(11)}lightning`, says: 'invalid mnemonic word' },
    { title: 'a wrong checksum', text: 'abandon '.repeat(12), says: 'invalid checksum' },
    {
      title: 'eleven words',
      text: 'abandon '.repeat(11),
      says: 'invalid mnemonic word count 11, it must be a multiple of 3',
    },
    { title: 'nothing', text: '', says: 'mnemonic code cannot be empty' },
    { title: 'bytes that are not text', text: '\x00\xff\x01', says: 'mnemonic code cannot be empty' },
  ])('with $title in it is refused like in phoenixd, left unchanged, and not quoted', async ({ text, says }) => {
    const node = new TestNode({ words: text })
    const daemon = startIn(node.dataDir)
    expect(await daemon.exited).toEqual({ code: 1, signal: null })
    expect(linesOf(daemon.stderr)).toEqual(['Usage: sandboxd [<options>]', `Error: ${says}`])
    expect(daemon.stderr).not.toContain('lightning')
    expect(readText(join(node.dataDir, 'seed.dat'))).toBe(text)
    expect(daemon.stderr + daemon.stdout).not.toContain('abandon')
  })

  test('that is a directory', async () => {
    const dataDir = temporaryDirectory()
    mkdirSync(join(dataDir, 'seed.dat'))
    await expectFault(startIn(dataDir), /^cannot read the seed file .*seed\.dat: illegal operation on a directory$/, 1)
  })

  test('whose directory does not exist', async () => {
    const daemon = startIn(temporaryDirectory(), ['--agree-to-terms-of-service', '--seed-path=/nonexistent/seed.dat'])
    await expectFault(daemon, /^cannot write the seed file \/nonexistent\/seed\.dat: no such file or directory$/, 1)
  })
})

describe.concurrent('a data directory that cannot be used', () => {
  test('because phoenix.conf is a directory', async () => {
    const dataDir = temporaryDirectory()
    mkdirSync(join(dataDir, 'phoenix.conf'))
    await expectFault(startIn(dataDir), /^cannot read .*phoenix\.conf: illegal operation on a directory$/, 1)
  })

  test('because it is a file', async () => {
    const path = join(temporaryDirectory(), 'file')
    writeFileSync(path, '')
    await expectFault(startIn(path), /file.*: (not a directory|file already exists)$/, 1)
  })

  test('because its parent is a file', async () => {
    const path = join(temporaryDirectory(), 'file')
    writeFileSync(path, '')
    await expectFault(startIn(join(path, 'data')), /file.*: not a directory$/, 1)
  })

  test('because it cannot be created: it is a broken link', async () => {
    const path = join(temporaryDirectory(), 'link')
    symlinkSync('/nonexistent/data', path)
    await expectFault(startIn(path), /^cannot create the data directory .*link: no such file or directory$/, 1)
  })

  test('because its lock file is a directory', async () => {
    const dataDir = temporaryDirectory()
    mkdirSync(join(dataDir, 'sandboxd.lock'))
    await expectFault(startIn(dataDir), /^cannot open .*sandboxd\.lock: illegal operation on a directory$/, 1)
  })

  test('because it cannot be locked: there is no flock', async () => {
    const daemon = new Daemon({ args: [], env: { PATH: '/nonexistent', PHOENIX_DATADIR: temporaryDirectory() } })
    await expectFault(daemon, /^cannot run flock \(package util-linux\)/, 1)
  })

  test('it starts even if the log cannot be written', async () => {
    const node = new TestNode()
    mkdirSync(join(node.dataDir, 'phoenix.log'))
    await node.start()
    expect((await node.get('/getinfo')).status).toBe(200)
    expect(node.daemon.stderr).toMatch(/^cannot write .*phoenix\.log: /)
  })
})

describe('a journal that cannot be used', () => {
  let used: TestNode
  let healthy: string

  beforeAll(async () => {
    used = await usedNode()
    healthy = readText(journalPath(used))
  })

  const damages: { title: string; damage: (text: string) => string; says: RegExp }[] = [
    {
      title: 'a wrong byte',
      damage: (text) => text.replace('"t":"invoice"', '"t":"Invoice"'),
      says: /corrupt at line 2 \(byte \d+\)/,
    },
    { title: 'a line missing its start', damage: (text) => text.replace(/\n.{5}/, '\n'), says: /corrupt at line 2/ },
    { title: 'an empty line', damage: (text) => `${text}\n`, says: /corrupt at line 3/ },
    { title: 'an invalid first line', damage: () => 'hello\n', says: /corrupt at line 1/ },
    { title: 'no line at all', damage: () => 'these bytes are somebody else’s', says: /is corrupt at line 1 / },
    { title: 'a first line that lost its end', damage: (text) => text.slice(0, 40), says: /is corrupt at line 1 / },
    { title: 'zeros', damage: (text) => '\0'.repeat(text.length), says: /is corrupt at line 1 / },
    {
      title: 'another owner',
      damage: () => journalLine(JSON.stringify([{ journal: 'sandboxd hub' }])),
      says: /is not the journal of sandboxd node 0[23]/,
    },
    {
      title: 'a payment of an invoice that it does not have',
      damage: (text) => text + journalLine(JSON.stringify([{ t: 'received', paymentHash: 'ab', paymentId: 'x', amountMsat: 1 }])),
      says: /the journal refers to ab before it was written/,
    },
    {
      title: 'a line that is not a list',
      damage: (text) => text + journalLine('{"t":"invoice"}'),
      says: /corrupt at line 3/,
    },
  ]

  test.each(damages)('because of $title: one line says so, and the file is left as it is', async ({ damage, says }) => {
    const path = journalPath(used)
    const damaged = damage(healthy)
    expect(damaged).not.toBe(healthy)
    writeFileSync(path, damaged)
    const files = readdirSync(used.dataDir).toSorted()
    const daemon = startIn(used.dataDir)
    await expectFault(daemon, says, 1)
    expect(daemon.stderr).toContain(path)
    expect(readText(path)).toBe(damaged)
    expect(readdirSync(used.dataDir).toSorted()).toEqual(files)
  })

  test('and with its old content it starts again', async () => {
    writeFileSync(journalPath(used), healthy)
    await used.start()
    expect((await used.get('/payments/incoming?all=true')).json()).toHaveLength(1)
    await used.daemon.kill()
  })

  test('because it is the journal of another node', async () => {
    const other = await usedNode()
    copyFileSync(journalPath(other), journalPath(used))
    await expectFault(startIn(used.dataDir), new RegExp(`is not the journal of sandboxd node ${used.nodeId}$`), 1)
    expect(readFileSync(journalPath(used))).toEqual(readFileSync(journalPath(other)))
  })

  test('because it is a directory', async () => {
    const fresh = new TestNode({ words: `${'abandon '.repeat(11)}about` })
    mkdirSync(join(fresh.dataDir, 'phoenix.regtest.03ae1f.db'))
    await expectFault(startIn(fresh.dataDir), /^cannot open .*phoenix\.regtest\.03ae1f\.db: illegal operation on a directory$/, 1)
  })
})

describe('one daemon per data directory', () => {
  test('a second one is refused with exit code 75 while the first goes on; after kill -9 of the first a new one starts', async () => {
    const node = await new TestNode().start()
    await expectFault(startIn(node.dataDir), /^another daemon holds .*sandboxd\.lock; stop it first$/, 75)
    expect((await node.get('/getinfo')).status).toBe(200)
    expect((await node.post('/createinvoice', { description: 'still here' })).status).toBe(200)
    await node.restart('SIGKILL')
    expect((await node.get('/payments/incoming?all=true')).json()).toHaveLength(1)
  })

  test('of eight that start at the same time, one runs', async () => {
    const { dataDir } = new TestNode()
    const all = Array.from({ length: 8 }, () => startIn(dataDir))
    const ended = await Promise.all(
      all.map((daemon) =>
        Promise.race([daemon.exited.then(({ code }) => code), daemon.printed(/listening on/).then(() => 'runs')]),
      ),
    ).catch((error: unknown) => error)
    expect(ended).toEqual(expect.arrayContaining(['runs']))
    expect((ended as unknown[]).toSorted()).toEqual([...Array<number>(7).fill(75), 'runs'])
    for (const daemon of all) if (daemon.child.exitCode === 75) expect(linesOf(daemon.stderr)).toHaveLength(1)
  })

  test('a node that still waits for its peer holds its directory, too', async () => {
    const node = await new TestNode({ conf: { 'sandbox-peer': 'down' } }).launch()
    await expectFault(startIn(node.dataDir), /another daemon holds/, 75)
  })
})

describe('an address it cannot listen on', () => {
  let taken: number
  let other: Server

  beforeAll(async () => {
    taken = await freePort()
    other = createServer()
    await new Promise<void>((resolve) => other.listen(taken, '127.0.0.1', resolve))
  })

  afterAll(() => {
    other.close()
  })

  test('for its controls: one line and exit code 1', async () => {
    const { dataDir } = new TestNode({ conf: { 'sandbox-control': `127.0.0.1:${taken}` } })
    await expectFault(
      startIn(dataDir),
      new RegExp(`^cannot listen on http://127\\.0\\.0\\.1:${taken}: .*address already in use`),
      1,
    )
  })

  test.each([
    { title: 'an address that no interface has', args: ['--http-bind-ip=203.0.113.7', '--http-bind-port=0'] },
    { title: 'an invalid name', args: ['--http-bind-ip=no such host', '--http-bind-port=0'] },
    { title: 'an invalid port', args: ['--http-bind-port=65536'] },
    { title: 'a negative port', args: ['--http-bind-port=-1'] },
  ])('for its API, $title: one line, and exit code 0 as with a port in use', async ({ args }) => {
    await expectFault(startIn(new TestNode().dataDir, args), / cannot listen on http:\/\//, 0)
  })
})

describe.concurrent('the hub', () => {
  const hubIn = (dataDir: string, ...args: string[]): Daemon =>
    new Daemon({ args: ['hub', `--datadir=${dataDir}`, '--http-bind-port=0', ...args] })

  test('a second one on the same directory is refused with exit code 75, and the first goes on', async () => {
    const hub = await new TestHub().start()
    await expectFault(hubIn(hub.dataDir), /^another daemon holds .*hub\.lock; stop it first$/, 75)
    expect((await hub.get('/wallet')).status).toBe(200)
    await hub.restart()
  })

  test('a corrupt journal is refused and left alone', async () => {
    const dataDir = temporaryDirectory()
    writeFileSync(join(dataDir, 'hub.db'), 'hello\n')
    await expectFault(hubIn(dataDir), /hub\.db is corrupt at line 1/, 1)
    expect(readText(join(dataDir, 'hub.db'))).toBe('hello\n')
  })

  test('a file in the place of its directory', async () => {
    const path = join(temporaryDirectory(), 'file')
    writeFileSync(path, '')
    await expectFault(hubIn(path), /^cannot create the data directory .*file: file already exists$/, 1)
  })

  test('a directory in the place of hub.conf', async () => {
    const dataDir = temporaryDirectory()
    mkdirSync(join(dataDir, 'hub.conf'))
    await expectFault(hubIn(dataDir), /^cannot read .*hub\.conf: illegal operation on a directory$/, 1)
  })

  test('a directory in the place of node.conf', async () => {
    const dataDir = temporaryDirectory()
    mkdirSync(join(dataDir, 'node.conf'))
    writeFileSync(join(dataDir, 'hub.conf'), confText({ 'node-token': 'a', 'control-token': 'b' }))
    await expectFault(hubIn(dataDir), /^cannot write .*node\.conf: illegal operation on a directory$/, 1)
  })

  test('a port in use', async () => {
    const hub = await new TestHub().start()
    const daemon = hubIn(temporaryDirectory(), `--http-bind-port=${hub.port}`)
    await expectFault(daemon, new RegExp(`^cannot listen on http://127\\.0\\.0\\.1:${hub.port}: `), 1)
  })

  test.each([['--no-such-option'], ['--http-bind-port=65536'], ['--http-bind-port=x'], ['extra']])('%s', async (argument) => {
    const daemon = new Daemon({ args: ['hub', argument] })
    expect((await daemon.exited).code).toBe(1)
    expect(linesOf(daemon.stderr).filter((line) => line.startsWith('Error: '))).toHaveLength(1)
    expect(daemon.stderr).not.toMatch(/^\s+at /m)
  })
})
