import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ProxyRouteConfig } from '../../src/proxy/index.ts'
import { Market } from '../paywall-harness.ts'
import { Backend, type OpenProxy, openProxy, Raw } from './harness.ts'

/** Whether a payment is used up if its customer leaves, stops reading or breaks the rules of HTTP. */

let market: Market
let backend: Backend
beforeAll(async () => {
  market = await Market.open()
  backend = await Backend.open()
})
afterEach(() => vi.restoreAllMocks())
beforeEach(async () => {
  await market.renew()
  backend.handler = undefined
})

async function open(route: Partial<ProxyRouteConfig> = {}, upstream = backend): Promise<OpenProxy> {
  const { client, nodeId, patienceMs, onEvent } = market.terms
  const limits = { openChallengesPerAddress: 0, maxBodyBytes: 1_000 }
  const routes = [
    { match: '/things/:id', amountSat: 10, ...route },
    { match: '/free', free: true as const },
  ]
  return openProxy({ upstream: upstream.url, node: nodeId, limits, routes }, { client, patienceMs, onEvent })
}

const outcomes = (): string[] => market.events.map(({ type }) => type).filter((type) => /delivered/.test(type))

/** A paid request for `/things/1`, without the empty line after its headers. */
async function headOf({ url }: OpenProxy, method: string): Promise<string[]> {
  const unpaid = await fetch(url('/things/1'), { method })
  const credential = await market.credentialFor(unpaid.headers.get('www-authenticate') ?? '')
  return [`${method} /things/1 HTTP/1.1`, 'Host: shop', `Authorization: ${credential}`]
}

describe('before the first byte of the response, the payment is released', () => {
  async function upload(...lines: string[]): Promise<Raw> {
    backend.handler = (request) => void request.on('error', () => undefined).resume()
    const proxy = await open()
    const head = await headOf(proxy, 'POST')
    const arrived = once(backend.server, 'request')
    const raw = new Raw(proxy.port).write(...head, ...lines)
    await arrived
    return raw
  }

  test.each([
    ['closes the connection', (raw: Raw) => raw.socket.destroy()],
    ['half closes it', (raw: Raw) => raw.socket.end()],
    ['resets it', (raw: Raw) => raw.socket.resetAndDestroy()],
  ])('C76: the customer %s during the upload', async (_name, leave) => {
    leave(await upload('Content-Length: 100', '', 'abc'))
    await expect.poll(outcomes).toEqual(['undelivered'])
  })

  test('C76: the customer leaves after 100 Continue', async () => {
    const raw = await upload('Content-Length: 5', 'Expect: 100-continue', '', '')
    await raw.shows(/100 Continue/)
    raw.write('hello')
    raw.socket.end()
    await expect.poll(outcomes).toEqual(['undelivered'])
  })

  test('C76: the customer sends a malformed chunk', async () => {
    const raw = await upload('Transfer-Encoding: chunked', '', '1', 'a', '')
    raw.write('zz', '')
    await raw.shows(/400 Bad Request/)
    await expect.poll(outcomes).toEqual(['undelivered'])
  })
})

describe('after the first byte, nothing that the customer does releases the payment', () => {
  test('C76: the body becomes too large', async () => {
    backend.handler = (request, response) => {
      request.on('error', () => undefined).resume()
      response.write('begun')
    }
    const proxy = await open()
    const head = await headOf(proxy, 'POST')
    const raw = new Raw(proxy.port).write(...head, 'Transfer-Encoding: chunked', '', '1', 'a', '')
    await raw.shows(/begun/)
    raw.write('7d0', 'a'.repeat(2_000), '')
    await raw.closed
    await expect.poll(outcomes).toEqual(['delivered'])
  })

  test('C76: the body is not finished until the upstream gives up', async () => {
    let giveUp = (): void => undefined
    backend.handler = (request, response) => {
      request.on('error', () => undefined).resume()
      response.write('begun')
      giveUp = () => void response.destroy()
    }
    const proxy = await open()
    const head = await headOf(proxy, 'POST')
    const raw = new Raw(proxy.port).write(...head, 'Content-Length: 10', '', 'a')
    await raw.shows(/begun/)
    giveUp()
    await raw.closed
    await expect.poll(outcomes).toEqual(['delivered'])
  })

  const CHUNK = Buffer.alloc(65_536, 'a')

  /** The upstream writes until nothing more is read, and then calls `then`. */
  function writeUntilFull(then: (response: ServerResponse) => void): void {
    backend.handler = (_request, response) => {
      let timer: NodeJS.Timeout | undefined
      const more = (): void => {
        clearTimeout(timer)
        while (!response.destroyed && response.write(CHUNK));
        response.once('drain', more)
        timer = setTimeout(() => {
          response.removeListener('drain', more)
          then(response)
        }, 4_000)
      }
      more()
    }
  }

  async function writeBytes(response: ServerResponse, bytes: number): Promise<void> {
    for (let sent = 0; sent < bytes; sent += CHUNK.length) if (!response.write(CHUNK)) await once(response, 'drain')
  }

  /** The customer stops reading at the first byte, for this long by the proxy's clock, and then reads on. */
  async function readWithPause(
    pauseMs: number,
    upstreamGoesOn: (response: ServerResponse) => Promise<unknown>,
  ): Promise<string[]> {
    let nowMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
    const proxy = await open()
    const raw = new Raw(proxy.port)
    raw.socket.removeAllListeners('data').once('data', () => raw.socket.pause())
    const isOver = new Promise<void>((resolve) => {
      writeUntilFull((response) => {
        nowMs += pauseMs
        const goingOn = upstreamGoesOn(response)
        raw.socket.resume()
        void goingOn.finally(() => response.socket?.resetAndDestroy()).then(() => resolve())
      })
    })
    raw.write(...(await headOf(proxy, 'GET')), '', '')
    await isOver
    await raw.closed
    await expect.poll(() => outcomes().length).toBe(1)
    return outcomes()
  }

  test('C76: they stop reading until the upstream gives up, and read on', async () => {
    const giveUp = async (response: ServerResponse): Promise<unknown> => response.socket?.resetAndDestroy()
    expect(await readWithPause(11_000, giveUp)).toEqual(['delivered'])
  })

  test('C76: but an ordinary pause of a slow reader does not use the payment up if the shop breaks the response off', async () => {
    expect(await readWithPause(9_000, (response) => writeBytes(response, 1_000_000))).toEqual(['undelivered'])
  })

  test('C76: nor does a long pause after which the upstream has gone on', async () => {
    expect(await readWithPause(60_000, (response) => writeBytes(response, 30_000_000))).toEqual(['undelivered'])
  })

  test('C76: but if they read, and the upstream breaks a long response off, it is released', async () => {
    backend.handler = (_request, response) => {
      response.write('a'.repeat(5_000_000), () => response.destroy())
    }
    const proxy = await open()
    const raw = new Raw(proxy.port).write(...(await headOf(proxy, 'GET')), '', '')
    await raw.closed
    expect(raw.text).toContain('aaa')
    await expect.poll(outcomes).toEqual(['undelivered'])
  })
})

test('C76: a customer who leaves while their response waits behind another one can use the payment again', async () => {
  const seen: string[] = []
  backend.handler = ({ url = '' }, response) => {
    seen.push(url)
    if (url !== '/free') response.end('done')
  }
  const proxy = await open()
  const head = await headOf(proxy, 'GET')
  const raw = new Raw(proxy.port).write('GET /free HTTP/1.1', 'Host: shop', '', ...head, '', '')
  await expect.poll(() => seen).toEqual(['/free', '/things/1'])
  raw.socket.destroy()
  await expect.poll(outcomes).toEqual(['undelivered'])
})

test('C75: no cache may keep a paid response, not even a cache that has a separate header', async () => {
  const own = [
    ...['CDN-Cache-Control', 'Surrogate-Control', 'Cloudflare-CDN-Cache-Control', 'Vercel-CDN-Cache-Control'],
    ...['X-Accel-Expires', 'Edge-Control', 'X-LiteSpeed-Cache-Control'],
  ]
  backend.handler = (_request, response) => {
    for (const name of own) response.setHeader(name, 'max-age=3600')
    response.end('done')
  }
  const proxy = await open()
  const raw = new Raw(proxy.port).write(...(await headOf(proxy, 'GET')), '', '')
  await raw.shows(/done/)
  expect(raw.text).toMatch(/cache-control: private\r\n/i)
  expect(raw.text).not.toMatch(/cdn-|surrogate|accel|edge|litespeed/i)
})

describe('with releaseOnDisconnect: false, a request reaches the upstream when it is complete', () => {
  const BREAKING: [string, string[], (raw: Raw) => unknown][] = [
    ['leaves', ['Content-Length: 12', '', '{"sms":"x"}'], (raw) => raw.socket.destroy()],
    ['half closes', ['Content-Length: 12', '', '{"sms":"x"}'], (raw) => raw.socket.end()],
    [
      'sends too much',
      ['Transfer-Encoding: chunked', '', 'b', '{"sms":"x"}', ''],
      async (raw) => {
        await raw.write('7d0', 'a'.repeat(2_000), '').shows(/413 /)
        raw.socket.destroy()
      },
    ],
    ['sends a malformed chunk', ['Transfer-Encoding: chunked', '', 'b', '{"sms":"x"}', ''], (raw) => raw.write('zz', '')],
  ]

  test.each(BREAKING)('C76: a customer who %s during the upload has caused no side effect', async (_name, body, stop) => {
    let sideEffects = 0
    backend.handler = (request, response) => {
      request.on('error', () => undefined).on('data', () => sideEffects++)
      request.once('end', () => response.end('sent'))
    }
    const proxy = await open({ releaseOnDisconnect: false })
    const head = await headOf(proxy, 'POST')
    const raw = new Raw(proxy.port).write(...head, ...body)
    // Enough time for a proxy that forwards too early to reach the upstream.
    for (let turn = 0; turn < 50 && sideEffects === 0; turn++) await new Promise((resolve) => setTimeout(resolve, 10))
    await stop(raw)
    await raw.closed
    expect(sideEffects).toBe(0)
    const again = new Raw(proxy.port).write(...head, 'Content-Length: 1', '', 'a')
    await again.shows(/200 OK[\s\S]*sent/)
    expect([sideEffects, market.paid]).toEqual([1, 1])
  })
})

test('C76: close waits for a response that the upstream finishes after its customer has left', async () => {
  let finish = (): void => undefined
  const arrived = new Promise<void>((resolve) => {
    backend.handler = (_request, response) => {
      finish = () => void response.end('done')
      resolve()
    }
  })
  const proxy = await open({ releaseOnDisconnect: false })
  const raw = new Raw(proxy.port).write(...(await headOf(proxy, 'GET')), '', '')
  await arrived
  raw.socket.destroy()
  await raw.closed
  let isClosed = false
  const closed = proxy.proxy.close().then(() => {
    isClosed = true
  })
  // If close had nothing to wait for, it would be done after a few turns of the event loop.
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(isClosed).toBe(false)
  finish()
  await closed
  expect(outcomes()).toEqual(['delivered'])
})
