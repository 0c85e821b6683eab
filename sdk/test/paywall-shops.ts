import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import { getRequestListener, serve } from '@hono/node-server'
import express5 from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { paywall as expressPaywall } from '../src/paywall/adapters/express.ts'
import { paywall as fastifyPaywall } from '../src/paywall/adapters/fastify.ts'
import { paywall as honoPaywall } from '../src/paywall/adapters/hono.ts'
import { paywall as nextPaywall } from '../src/paywall/adapters/next.ts'
import { paymentOf, paywall } from '../src/paywall/adapters/request.ts'
import { openElysia } from './shops/elysia.ts'
import { openKoa } from './shops/koa.ts'
import { openNest } from './shops/nest.ts'
import {
  brokenOff,
  brokenOffBody,
  JOKE,
  newShop,
  type Opening,
  opened,
  PUBLIC,
  type Shop,
  type ShopOptions,
} from './shops/shop.ts'

export { JOKE, type Opening, type Shop, type ShopOptions }

const express4: typeof express5 = createRequire(import.meta.url)('express4')

const openExpress =
  (express: typeof express5) =>
  async (options: ShopOptions): Promise<Shop> => {
    const app = express()
    app.set('trust proxy', true)
    const shop = newShop()
    app.get('/jokes/:id', expressPaywall(options), (request, response) => {
      shop.delivered++
      response.json({ joke: JOKE, id: request.params.id })
    })
    app.get('/broken', expressPaywall(options), () => {
      throw new Error('broken')
    })
    app.get('/moved', expressPaywall(options), (_request, response) => response.redirect('/elsewhere'))
    app.get('/public', expressPaywall(options), (_request, response) => {
      response.set('Cache-Control', PUBLIC).send('public')
    })
    app.get(
      '/missing',
      expressPaywall(options),
      (_request, response) => void response.status(shop.isRepaired ? 200 : 404).send('missing'),
    )
    app.get('/slow', expressPaywall(options), async (_request, response) => {
      shop.started++
      await shop.work()
      response.send('slow')
    })
    app.get('/broken-off', expressPaywall(options), async (_request, response) => {
      response.write('half')
      await shop.work()
      if (shop.isRepaired) response.end(' and half')
      else response.destroy()
    })
    app.get('/released', expressPaywall(options), (request, response) => {
      paymentOf(request)?.release('out of stock')
      response.send('sorry')
    })
    app.get('/delivered', expressPaywall(options), (request, response) => {
      paymentOf(request)?.deliver()
      response.status(500).send('sent by mail all the same')
    })
    app.post(
      '/echo',
      expressPaywall(options),
      express.text({ type: () => true, limit: '8mb' }),
      // For a request without a body, Express 4 sets `request.body` to an empty object.
      (request, response) => void response.send(typeof request.body === 'string' ? request.body : ''),
    )
    app.use((_error: Error, _request: express5.Request, response: express5.Response, _next: express5.NextFunction) => {
      response.status(500).send('broken')
    })
    return opened(app.listen(0, '127.0.0.1'), shop)
  }

/** Without a framework: the Express adapter in front of plain functions. */
async function openNodeHttp(options: ShopOptions): Promise<Shop> {
  const shop = newShop()
  const charge = expressPaywall({ description: 'GET /jokes/:id', ...options })
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://shop')
    const handlers: Record<string, () => unknown> = {
      '/broken': () => {
        throw new Error('broken')
      },
      '/moved': () => response.writeHead(302, { location: '/elsewhere' }).end(),
      '/public': () => response.setHeader('cache-control', PUBLIC).end('public'),
      '/missing': () => response.writeHead(shop.isRepaired ? 200 : 404).end('missing'),
      '/slow': async () => {
        shop.started++
        await shop.work()
        response.end('slow')
      },
      '/broken-off': async () => {
        response.write('half')
        await shop.work()
        if (shop.isRepaired) response.end(' and half')
        else response.destroy()
      },
      '/released': () => {
        paymentOf(request)?.release('out of stock')
        response.end('sorry')
      },
      '/delivered': () => {
        paymentOf(request)?.deliver()
        response.writeHead(500).end('sent by mail all the same')
      },
    }
    handlers['/echo'] = () => request.pipe(response)
    const joke = (): void => {
      shop.delivered++
      const body = JSON.stringify({ joke: JOKE, id: pathname.split('/').at(-1) })
      response.setHeader('content-type', 'application/json').end(body)
    }
    void charge(request, response, handlers[pathname] ?? joke)
  })
  return opened(server.listen(0, '127.0.0.1'), shop)
}

async function openFastify(options: ShopOptions): Promise<Shop> {
  const app = fastify({ trustProxy: true, bodyLimit: 8_000_000 })
  const shop = newShop()
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
  app.post('/echo', { onRequest: fastifyPaywall(options) }, async (request) => request.body ?? '')
  app.get('/jokes/:id', { onRequest: fastifyPaywall(options) }, async (request) => {
    shop.delivered++
    return { joke: JOKE, id: (request.params as { id: string }).id }
  })
  app.get('/broken', { onRequest: fastifyPaywall(options) }, async () => {
    throw new Error('broken')
  })
  app.get('/moved', { onRequest: fastifyPaywall(options) }, async (_request, reply) => reply.redirect('/elsewhere'))
  app.get('/public', { onRequest: fastifyPaywall(options) }, async (_request, reply) =>
    reply.header('cache-control', PUBLIC).send('public'),
  )
  app.get('/missing', { onRequest: fastifyPaywall(options) }, async (_request, reply) =>
    reply.code(shop.isRepaired ? 200 : 404).send('missing'),
  )
  app.get('/slow', { onRequest: fastifyPaywall(options) }, async () => {
    shop.started++
    await shop.work()
    return 'slow'
  })
  app.get('/broken-off', { onRequest: fastifyPaywall(options) }, async (_request, reply) =>
    reply.send(Readable.from(brokenOff(shop))),
  )
  app.get('/released', { onRequest: fastifyPaywall(options) }, async (request) => {
    paymentOf(request)?.release('out of stock')
    return 'sorry'
  })
  app.get('/delivered', { onRequest: fastifyPaywall(options) }, async (request, reply) => {
    paymentOf(request)?.deliver()
    return reply.code(500).send('sent by mail all the same')
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return opened(app.server, shop)
}

async function openHono(options: ShopOptions): Promise<Shop> {
  const app = new Hono()
  const shop = newShop()
  app.get('/jokes/:id', honoPaywall(options), (c) => {
    shop.delivered++
    return c.json({ joke: JOKE, id: c.req.param('id') })
  })
  app.get('/broken', honoPaywall(options), () => {
    throw new Error('broken')
  })
  app.get('/moved', honoPaywall(options), (c) => c.redirect('/elsewhere'))
  app.get('/public', honoPaywall(options), (c) => c.text('public', 200, { 'cache-control': PUBLIC }))
  app.get('/missing', honoPaywall(options), (c) => c.text('missing', shop.isRepaired ? 200 : 404))
  app.get('/slow', honoPaywall(options), async (c) => {
    shop.started++
    await shop.work()
    return c.text('slow')
  })
  app.get('/broken-off', honoPaywall(options), () => new Response(brokenOffBody(shop)))
  app.get('/released', honoPaywall(options), (c) => {
    paymentOf(c)?.release('out of stock')
    return c.text('sorry')
  })
  app.get('/delivered', honoPaywall(options), (c) => {
    paymentOf(c)?.deliver()
    return c.text('sent by mail all the same', 500)
  })
  app.post('/echo', honoPaywall(options), async (c) => c.text(await c.req.text()))
  app.onError((_error, c) => c.text('broken', 500))
  return opened(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server, shop)
}

/** Like Next or a worker runtime: the router is elsewhere, and the handler turns a request into a response. */
const openPlain =
  (charge: typeof paywall) =>
  async (options: ShopOptions): Promise<Shop> => {
    const shop = newShop()
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
      [/^\/moved$/, charge(options, () => new Response(null, { status: 302, headers: { location: '/elsewhere' } }))],
      [/^\/public$/, charge(options, () => new Response('public', { headers: { 'cache-control': PUBLIC } }))],
      [/^\/missing$/, charge(options, () => new Response('missing', { status: shop.isRepaired ? 200 : 404 }))],
      [
        /^\/slow$/,
        charge(options, async () => {
          shop.started++
          await shop.work()
          return new Response('slow')
        }),
      ],
      [/^\/echo$/, charge(options, async (request: Request) => new Response(await request.text()))],
      [/^\/broken-off$/, charge(options, () => new Response(brokenOffBody(shop)))],
      [
        /^\/released$/,
        charge(options, (request: Request) => {
          paymentOf(request)?.release('out of stock')
          return new Response('sorry')
        }),
      ],
      [
        /^\/delivered$/,
        charge(options, (request: Request) => {
          paymentOf(request)?.deliver()
          return new Response('sent by mail all the same', { status: 500 })
        }),
      ],
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
  ['Express 5', openExpress(express5)],
  ['Express 4', openExpress(express4)],
  ['Fastify', openFastify],
  ['Hono', openHono],
  ['a Next route', openPlain(nextPaywall)],
  ['Request → Response', openPlain(paywall)],
  ['node:http', openNodeHttp],
  ['Koa', openKoa],
  ['Nest', openNest],
  ['Elysia', openElysia],
]
