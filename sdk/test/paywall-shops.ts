import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener, serve } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll } from 'vitest'
import { paywall as expressPaywall } from '../src/paywall/express.ts'
import { paywall as fastifyPaywall } from '../src/paywall/fastify.ts'
import type { PaywallOptions } from '../src/paywall/gate.ts'
import { paywall as honoPaywall } from '../src/paywall/hono.ts'
import { paywall as nextPaywall } from '../src/paywall/next.ts'
import { paymentOf, paywall } from '../src/paywall/request.ts'

/** The same small shop in every framework, each as its own documentation writes it, on a real socket. */
export type Shop = { url: (path: string) => string; delivered: number }
export type ShopOptions = PaywallOptions<any>
/** GET /jokes/:id: a joke. /broken: the handler throws. /public: the handler says that anybody may cache it. */
export type Opening = (options: ShopOptions) => Promise<Shop>

export const JOKE = 'A transaction walks into a bar. The bartender says: wait six blocks.'

const servers: { close: () => unknown; closeAllConnections?: () => void }[] = []
afterAll(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections?.()
  }
})

async function opened(server: Server, shop: Omit<Shop, 'url'>): Promise<Shop> {
  servers.push(server)
  if (!server.listening) await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(shop, { url: (path: string) => `http://127.0.0.1:${port}${path}` })
}

const PUBLIC = 'public, max-age=60, s-maxage=600'

async function openExpress(options: ShopOptions): Promise<Shop> {
  const app = express()
  const shop = { delivered: 0 }
  app.get('/jokes/:id', expressPaywall(options), (request, response) => {
    shop.delivered++
    response.json({ joke: JOKE, id: request.params.id })
  })
  app.get('/broken', expressPaywall(options), () => {
    throw new Error('broken')
  })
  app.get('/public', expressPaywall(options), (_request, response) => {
    response.set('Cache-Control', PUBLIC).send('public')
  })
  app.use((_error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
    response.status(500).send('broken')
  })
  return opened(app.listen(0, '127.0.0.1'), shop)
}

async function openFastify(options: ShopOptions): Promise<Shop> {
  const app = fastify()
  const shop = { delivered: 0 }
  app.get('/jokes/:id', { onRequest: fastifyPaywall(options) }, async (request) => {
    shop.delivered++
    return { joke: JOKE, id: (request.params as { id: string }).id }
  })
  app.get('/broken', { onRequest: fastifyPaywall(options) }, async () => {
    throw new Error('broken')
  })
  app.get('/public', { onRequest: fastifyPaywall(options) }, async (_request, reply) =>
    reply.header('cache-control', PUBLIC).send('public'),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  return opened(app.server, shop)
}

async function openHono(options: ShopOptions): Promise<Shop> {
  const app = new Hono()
  const shop = { delivered: 0 }
  app.get('/jokes/:id', honoPaywall(options), (c) => {
    shop.delivered++
    return c.json({ joke: JOKE, id: c.req.param('id') })
  })
  app.get('/broken', honoPaywall(options), () => {
    throw new Error('broken')
  })
  app.get('/public', honoPaywall(options), (c) => c.text('public', 200, { 'cache-control': PUBLIC }))
  app.onError((_error, c) => c.text('broken', 500))
  return opened(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server, shop)
}

/** What Next or a worker's runtime does: the router is elsewhere, the handler turns a request into a response. */
const openPlain =
  (charge: typeof paywall) =>
  async (options: ShopOptions): Promise<Shop> => {
    const shop = { delivered: 0 }
    const { createServer } = await import('node:http')
    const routes: [path: RegExp, handler: (request: Request) => Promise<Response>][] = [
      [
        /^\/jokes\//,
        charge({ ...options, route: '/jokes/:id' }, (request: Request) => {
          if (!paymentOf(request)) throw new Error('it does not know what was paid')
          shop.delivered++
          return Response.json({ joke: JOKE, id: new URL(request.url).pathname.split('/').at(-1) })
        }),
      ],
      [
        /^\/broken$/,
        charge(options, () => {
          throw new Error('broken')
        }),
      ],
      [/^\/public$/, charge(options, () => new Response('public', { headers: { 'cache-control': PUBLIC } }))],
    ]
    const listener = getRequestListener(
      async (request) => {
        const { pathname } = new URL(request.url)
        const handler = routes.find(([path]) => path.test(pathname))?.[1]
        return handler ? handler(request) : new Response(null, { status: 404 })
      },
      { errorHandler: () => new Response('broken', { status: 500 }) },
    )
    return opened(createServer(listener).listen(0, '127.0.0.1'), shop)
  }

export const SHOPS: [name: string, open: Opening][] = [
  ['Express', openExpress],
  ['Fastify', openFastify],
  ['Hono', openHono],
  ['a Next route', openPlain(nextPaywall)],
  ['Request → Response', openPlain(paywall)],
]
