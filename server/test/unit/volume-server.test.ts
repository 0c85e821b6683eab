import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Volume } from '../../src/runtimes/kubernetes/moving/volume.ts'
import { volumeServer } from '../../src/runtimes/kubernetes/moving/volume-server.ts'
import { temporaryDirectory } from '../support/server.ts'

/** C90 and C91: what runs beside a volume while a wallet is moved. */

const DATABASE = 'phoenix.regtest.0a1b2c.db'

async function served(isWritable: boolean): Promise<{ directory: string; url: string }> {
  const directory = temporaryDirectory()
  const server = volumeServer({ directory, password: 'password', isWritable }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { directory, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const send = async (url: string, method: string, body?: string, password = 'password'): Promise<number> =>
  (await fetch(url, { method, headers: { authorization: `Bearer ${password}` }, ...(body === undefined ? {} : { body }) })).status

test('C90: only the channel database is listed, sent or received, and nothing without the password', async () => {
  const { directory, url } = await served(true)
  mkdirSync(join(directory, 'below'))
  writeFileSync(join(directory, 'phoenix.conf'), 'http-password=secret')
  symlinkSync('/etc/hostname', join(directory, `${DATABASE}-wal`))
  writeFileSync(join(directory, DATABASE), 'channels')
  expect((await new Volume(url, 'password').files()).map(({ name, bytes }) => [name, bytes])).toEqual([[DATABASE, 8]])
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
  const files = await new Volume(url, 'password').replaceFiles(source, [DATABASE])
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
  await new Volume(url, 'password').copyTo(target)
  expect(readFileSync(join(target, DATABASE), 'utf8')).toBe('channels')
})

test('C91: a volume without channels is not released', async () => {
  const { url } = await served(false)
  await expect(new Volume(url, 'password').copyTo(join(temporaryDirectory(), 'copy'))).rejects.toThrow('no channel database')
})
