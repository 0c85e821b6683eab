import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Volume } from '../../../src/runtimes/kubernetes/moving/volume-client.ts'
import { INSTANCE, volumeServer } from '../../../src/runtimes/kubernetes/moving/volume-server.ts'

/** C90 and C91: what runs beside a volume while a wallet is moved. */

const DATABASE = 'phoenix.regtest.0a1b2c.db'

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-volume-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

type Served = { directory: string; url: string; close: () => Promise<void> }

async function served(isWritable: boolean, directory = temporaryDirectory(), port = 0): Promise<Served> {
  const server = volumeServer({ directory, password: 'password', isWritable }).listen(port, '127.0.0.1')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  onTestFinished(close)
  await once(server, 'listening')
  return { directory, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

async function opened(url: string): Promise<Volume> {
  const volume = await Volume.open(url, 'password')
  if (!volume) throw new Error('nothing listens')
  return volume
}

async function send(url: string, method: string, body?: string, password = 'password'): Promise<number> {
  const authorization = `Bearer ${password}`
  const { headers } = await fetch(new URL('/', url), { headers: { authorization } })
  const instance = headers.get(INSTANCE)
  return (
    await fetch(url, {
      method,
      headers: { authorization, ...(instance === null ? {} : { [INSTANCE]: instance }) },
      ...(body === undefined ? {} : { body }),
    })
  ).status
}

test('C90: only the channel database is listed, sent or received, and nothing without the password', async () => {
  const { directory, url } = await served(true)
  mkdirSync(join(directory, 'below'))
  writeFileSync(join(directory, 'phoenix.conf'), 'http-password=secret')
  symlinkSync('/etc/hostname', join(directory, `${DATABASE}-wal`))
  writeFileSync(join(directory, DATABASE), 'channels')
  expect((await (await opened(url)).files()).map(({ name, bytes }) => [name, bytes])).toEqual([[DATABASE, 8]])
  for (const name of [
    'phoenix.conf',
    'below',
    '../etc/hostname',
    '%2e%2e/hostname',
    `${DATABASE}-wal`,
    `${DATABASE}.part`,
    'seed.dat',
  ])
    expect([name, await send(`${url}/${name}`, 'GET')]).toEqual([name, 404])
  expect(await send(`${url}/seed.dat`, 'PUT', 'words')).toBe(404)
  for (const password of ['', 'passwor', 'password2'])
    for (const method of ['GET', 'DELETE']) expect(await send(`${url}/`, method, undefined, password)).toBe(401)
  expect(readFileSync(join(directory, DATABASE), 'utf8')).toBe('channels')
})

test('C90: what was in the volume is replaced, and is read back from the disk', async () => {
  const { directory, url } = await served(true)
  writeFileSync(join(directory, `${DATABASE}-journal`), 'of an interrupted call')
  const source = temporaryDirectory()
  const content = Buffer.alloc(3_000_000, 'channels')
  writeFileSync(join(source, DATABASE), content)
  const files = await (await opened(url)).replaceFiles(source, [DATABASE])
  expect(files).toEqual([expect.objectContaining({ name: DATABASE, bytes: content.length })])
  expect(readdirSync(directory)).toEqual([DATABASE])
  expect(readFileSync(join(directory, DATABASE)).equals(content)).toBe(true)
})

test('C91: a volume that is released is read and never written', async () => {
  const { directory, url } = await served(false)
  writeFileSync(join(directory, DATABASE), 'channels')
  expect(await send(`${url}/`, 'DELETE')).toBe(405)
  expect(await send(`${url}/${DATABASE}`, 'PUT', 'others')).toBe(405)
  const target = join(temporaryDirectory(), 'copy')
  await (await opened(url)).copyTo(target)
  expect(readFileSync(join(target, DATABASE), 'utf8')).toBe('channels')
})

test('C91: a volume without channels is not released', async () => {
  const { url } = await served(false)
  await expect((await opened(url)).copyTo(join(temporaryDirectory(), 'copy'))).rejects.toThrow('no channel database')
})

test('C90: once another process has the volume, the earlier one changes nothing in it', async () => {
  const { directory, url, close } = await served(true)
  const volume = await opened(url)
  await close()
  await served(true, directory, Number(new URL(url).port))
  writeFileSync(join(directory, DATABASE), 'newer channels')
  const source = temporaryDirectory()
  writeFileSync(join(source, DATABASE), 'channels')
  await expect(volume.replaceFiles(source, [DATABASE])).rejects.toThrow('another process has the volume now')
  for (const [method, name] of [
    ['DELETE', ''],
    ['PUT', DATABASE],
    ['GET', DATABASE],
  ] as const) {
    const { status } = await fetch(`${url}/${name}`, { method, headers: { authorization: 'Bearer password' } })
    expect([method, status]).toEqual([method, 409])
  }
  expect(readFileSync(join(directory, DATABASE), 'utf8')).toBe('newer channels')
})

test('C90: a volume that a daemon has used is not written', async () => {
  const { directory, url } = await served(true)
  writeFileSync(join(directory, DATABASE), 'newer channels')
  writeFileSync(join(directory, 'phoenix.log'), 'it has started')
  const source = temporaryDirectory()
  writeFileSync(join(source, DATABASE), 'channels')
  await expect((await opened(url)).replaceFiles(source, [DATABASE])).rejects.toThrow('a daemon has already run on this volume')
  expect(readFileSync(join(directory, DATABASE), 'utf8')).toBe('newer channels')
})

test('C90: if a file cannot be written, the error says why', async () => {
  const { directory, url } = await served(true)
  const source = temporaryDirectory()
  writeFileSync(join(source, DATABASE), 'channels')
  mkdirSync(join(directory, `${DATABASE}.part`))
  await expect((await opened(url)).replaceFiles(source, [DATABASE])).rejects.toThrow('status 500: EISDIR')
})

test('C91: the names of files from a volume never leave the directory', async () => {
  const names = ['../seed.dat', '/tmp/seed.dat', 'seed.dat']
  for (const name of names) {
    const list = [
      { name: DATABASE, bytes: 0, sha256: '' },
      { name, bytes: 0, sha256: '' },
    ].reverse()
    const server = createServer((_, response) => void response.writeHead(200).end(JSON.stringify(list))).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const target = join(temporaryDirectory(), 'copy')
    const volume = await opened(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    await expect(volume.copyTo(target)).rejects.toThrow('not part of a channel database')
    expect(readdirSync(target)).toEqual([])
  }
})
