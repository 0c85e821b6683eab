import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { afterAll } from 'vitest'
import type { PaywallOptions } from '../../src/paywall/options.ts'

/** The same small shop in every framework, written as in the framework's documentation, on a real socket. */
export type Shop = {
  url: (path: string) => string
  /** How many jokes were served, and how many slow responses were started. */
  delivered: number
  started: number
  /** How many connections were closed. */
  closed: number
  /** What /slow and /broken-off wait for. */
  work: () => Promise<void>
  /** If true, /missing and /broken-off respond normally. */
  isRepaired: boolean
}
export type ShopOptions = PaywallOptions<any>
/**
 * GET /jokes/:id: a joke. /broken: the handler throws. /moved: a redirect. /public: the handler allows shared caches.
 * /missing: 404. /slow: a response after some work. /broken-off: half a response, some work, then the shop aborts it.
 * /released, /delivered: the handler calls `release` or `deliver` itself, and its status says the opposite. POST /echo: the body.
 */
export type Opening = (options: ShopOptions) => Promise<Shop>

export const JOKE = 'A transaction walks into a bar. The bartender says: wait six blocks.'

const servers: { close: () => unknown; closeAllConnections?: () => void }[] = []
afterAll(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections?.()
  }
})

export const newShop = (): Omit<Shop, 'url'> => ({
  delivered: 0,
  started: 0,
  closed: 0,
  work: async () => undefined,
  isRepaired: false,
})

export async function opened(server: Server, shop: Omit<Shop, 'url'>): Promise<Shop> {
  servers.push(server)
  // Only the client closes idle connections. If the server did, it could close one while a delayed request is on its way.
  server.keepAliveTimeout = 0
  server.on('connection', (socket) => socket.once('close', () => shop.closed++))
  if (!server.listening) await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(shop, { url: (path: string) => `http://127.0.0.1:${port}${path}` })
}

export const PUBLIC = 'public, max-age=60, s-maxage=600'

type Working = Pick<Shop, 'work' | 'isRepaired'>
export async function* brokenOff(shop: Working): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode('half')
  await shop.work()
  if (!shop.isRepaired) throw new Error('broken off')
  yield new TextEncoder().encode(' and half')
}
export const brokenOffBody = (shop: Working): ReadableStream => Readable.toWeb(Readable.from(brokenOff(shop))) as ReadableStream
