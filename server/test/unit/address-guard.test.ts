import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import {
  AddressGuard,
  AddressRefused,
  type GuardOptions,
  resolveByDns,
  resolveLocally,
} from '../../src/events/webhooks/address-guard.ts'
import { type Result, sendOnce } from '../../src/events/webhooks/sender.ts'

const guardOf = (options: Partial<GuardOptions> = {}): AddressGuard =>
  new AddressGuard({ allowPrivate: false, allowHttp: false, isOwnPort: () => false, resolve: async () => [], ...options })
const local = (options: Partial<GuardOptions> = {}): AddressGuard => guardOf({ allowPrivate: true, allowHttp: true, ...options })
const allows = (guard: AddressGuard, url: string): boolean => {
  try {
    guard.checkUrl(url)
    return true
  } catch (error) {
    if (error instanceof AddressRefused) return false
    throw error
  }
}

/** Each stands for its network: the first or the last address, or one that a cloud uses. */
const PRIVATE_IPV4 = [
  ...['0.0.0.0', '0.255.255.255', '10.0.0.1', '10.255.255.255', '100.64.0.0', '100.127.255.255', '127.0.0.1', '127.255.255.254'],
  ...['172.16.0.0', '172.31.255.255', '192.0.0.8', '192.0.2.1', '192.88.99.1', '192.168.0.1', '192.168.255.255', '198.18.0.1'],
  ...['198.19.255.255', '198.51.100.1', '203.0.113.1'],
]
const NEVER_IPV4 = ['169.254.169.254', '169.254.0.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255']
const PRIVATE_IPV6 = ['::', '::1', '::7f00:1', 'fc00::1', '100::1', '2001::1', '2001:db8::1', '3fff::1', '5f00::1', 'fec0::1']
const NEVER_IPV6 = [
  'fd00:ec2::254',
  'fd20:ce::254',
  'fd00:c1::a9fe:a9fe',
  'fe80::1',
  'ff02::1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  '64:ff9b::7f00:1',
  '64:ff9b:1::1',
  '2002:7f00:1::1',
]
const GLOBAL = [
  '1.1.1.1',
  '100.63.255.255',
  '100.128.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '198.20.0.0',
  '223.255.255.255',
]
const GLOBAL_IPV6 = ['2606:4700:4700::1111', '2a00:1450:4001::1', '2003::1', '3ffe::1']
const urlOf = (address: string): string => `https://${address.includes(':') ? `[${address}]` : address}/`

describe('C61: addresses', () => {
  test('C61: addresses that are not globally reachable are refused, as literals and as answers of a name server', async () => {
    for (const address of [...PRIVATE_IPV4, ...NEVER_IPV4, ...PRIVATE_IPV6, ...NEVER_IPV6]) {
      expect(allows(guardOf(), urlOf(address)), address).toBe(false)
      const named = guardOf({ resolve: async () => ['1.1.1.1', address] })
      await expect(named.addressesOf(new URL('https://shop.example/')), address).rejects.toThrow(AddressRefused)
    }
    for (const address of [...GLOBAL, ...GLOBAL_IPV6]) {
      expect(allows(guardOf(), urlOf(address)), address).toBe(true)
      const named = guardOf({ resolve: async () => [address] })
      expect(await named.addressesOf(new URL('https://shop.example/'))).toEqual([address])
    }
  })

  test('C61: WEBHOOK_ALLOW_PRIVATE allows private addresses, but not link-local ones or those that embed an IPv4 address', () => {
    for (const address of [...PRIVATE_IPV4, ...PRIVATE_IPV6, ...GLOBAL, ...GLOBAL_IPV6])
      expect(allows(local(), urlOf(address)), address).toBe(true)
    for (const address of [...NEVER_IPV4, ...NEVER_IPV6]) expect(allows(local(), urlOf(address)), address).toBe(false)
  })

  test('C61: every spelling of an address is the same address', () => {
    const spellings = [
      '2130706433',
      '0x7f000001',
      '017700000001',
      '127.1',
      '0x7f.1',
      '127.0.0.1.',
      '１２７.0.0.1',
      '%31%32%37.0.0.1',
    ]
    for (const spelling of spellings) expect(allows(guardOf(), `https://${spelling}/`), spelling).toBe(false)
  })

  test('C61: an answer with a zone, or that is not an address, is refused', async () => {
    for (const answer of ['fe80::1%lo', '::1%1', 'localhost', ''])
      await expect(local({ resolve: async () => [answer] }).addressesOf(new URL('http://a.example/')), answer).rejects.toThrow()
  })

  test('C61: localhost, with and without a trailing dot, is refused', async () => {
    for (const resolve of [resolveLocally, resolveByDns])
      for (const host of ['localhost', 'localhost.', 'LOCALHOST'])
        await expect(guardOf({ resolve }).addressesOf(new URL(`https://${host}/`)), host).rejects.toThrow()
  })

  test('C61: a URL without https, with credentials or with a fragment is refused', () => {
    const refused = [
      'http://shop.example/',
      'ftp://shop.example/',
      'shop.example',
      '',
      'https://',
      'https://me:secret@shop.example/',
      'https://me@shop.example/',
      'https://shop.example/#part',
    ]
    for (const url of refused) expect(allows(guardOf(), url), url).toBe(false)
    expect(allows(guardOf(), 'https://shop.example:8443/hook?token=1')).toBe(true)
    expect(allows(local(), 'http://shop.example/')).toBe(true)
  })

  test('C61: the service’s own ports are refused on every address of this machine, and only there', () => {
    const guard = local({ isOwnPort: (port) => port === 8402 })
    const own = Object.values(networkInterfaces()).flatMap((found) => found?.filter(({ family }) => family === 'IPv4') ?? [])
    for (const address of ['127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::', ...own.map(({ address }) => address)]) {
      const host = address.includes(':') ? `[${address}]` : address
      expect(allows(guard, `http://${host}:8402/`), address).toBe(false)
      expect(allows(guard, `http://${host}:8403/`), address).toBe(true)
    }
    expect(allows(guard, 'https://1.1.1.1:8402/')).toBe(true)
  })

  test('C51, C61: private addresses are allowed by default only on a local install', () => {
    const key = Buffer.alloc(32).toString('base64')
    const remote = { PUBLIC_URL: 'https://pay.example', MASTER_KEY: key, TRUST_PROXY: '1' }
    expect(readConfig({}).webhookAllowPrivate).toBe(true)
    expect(readConfig(remote).webhookAllowPrivate).toBe(false)
    expect(readConfig({ ...remote, WEBHOOK_ALLOW_PRIVATE: 'true' }).webhookAllowPrivate).toBe(true)
    expect(readConfig({ WEBHOOK_ALLOW_PRIVATE: 'false' }).webhookAllowPrivate).toBe(false)
    expect(() => readConfig({ WEBHOOK_ALLOW_PRIVATE: 'yes' })).toThrow()
  })
})

describe('C61: connections', () => {
  let here: Server
  let elsewhere: Server
  let port: number
  const hosts: string[] = []
  const stray: string[] = []

  beforeAll(async () => {
    here = createServer((request, response) => {
      hosts.push(String(request.headers.host))
      response.end('here')
    }).listen(0, '127.0.0.1')
    await once(here, 'listening')
    port = (here.address() as AddressInfo).port
    elsewhere = createServer((request, response) => {
      stray.push(String(request.headers.host))
      response.end('elsewhere')
    }).listen(port, '127.0.0.2')
    await once(elsewhere, 'listening')
  })
  afterAll(() => {
    here.close()
    elsewhere.close()
  })

  const attempt = (guard: AddressGuard, url: string): Promise<Result> =>
    sendOnce(guard, { url, headers: {}, body: '{}' }, new AbortController().signal)

  test('C61: a name is resolved once per attempt, and the connection goes to the address that was checked', async () => {
    const answers = [['127.0.0.1'], ['127.0.0.2']]
    const guard = local({ resolve: async () => answers.shift() ?? [] })
    expect(await attempt(guard, `http://rebind.example:${port}/`)).toMatchObject({ status: 200, response: 'here' })
    expect(answers).toHaveLength(1)
    expect([hosts, stray]).toEqual([[`rebind.example:${port}`], []])
  })

  test('C61: a name that resolves to a forbidden address the second time gets nothing', async () => {
    const answers = [['127.0.0.1'], ['169.254.169.254'], ['127.0.0.1', 'fe80::1']]
    const guard = local({ resolve: async () => answers.shift() ?? [] })
    const url = `http://rebind.example:${port}/`
    expect((await attempt(guard, url)).isSuccess).toBe(true)
    const before = hosts.length
    for (let time = 2; time <= 3; time++)
      expect(await attempt(guard, url)).toMatchObject({
        status: null,
        error: 'The host must be reachable from the internet.',
      })
    expect(await attempt(guard, url)).toMatchObject({ status: null, error: 'The host name has no address.' })
    expect(hosts).toHaveLength(before)
  })

  test('C61: a stored URL is checked again in each attempt', async () => {
    const before = hosts.length
    expect(await attempt(guardOf(), `http://127.0.0.1:${port}/`)).toMatchObject({ status: null, isSuccess: false })
    expect(await attempt(guardOf({ allowHttp: true }), `http://127.0.0.1:${port}/`)).toMatchObject({
      status: null,
      isSuccess: false,
    })
    expect(hosts).toHaveLength(before)
  })

  test('C61: a name that does not exist has no address', async () => {
    await expect(resolveByDns('does-not-exist.invalid')).rejects.toThrow()
  })
})
