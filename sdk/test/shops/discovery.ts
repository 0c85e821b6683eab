import 'reflect-metadata'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import { getRequestListener, serve } from '@hono/node-server'
import { Router } from '@koa/router'
import { Controller, Get, Module, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { Elysia } from 'elysia'
import express5 from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import type { Service } from '../../src/discovery/index.ts'
import * as web from '../../src/discovery/index.ts'
import * as elysia from '../../src/paywall/adapters/elysia.ts'
import * as express from '../../src/paywall/adapters/express.ts'
import * as fast from '../../src/paywall/adapters/fastify.ts'
import * as hono from '../../src/paywall/adapters/hono.ts'
import * as koa from '../../src/paywall/adapters/koa.ts'
import * as nest from '../../src/paywall/adapters/nest.ts'
import * as next from '../../src/paywall/adapters/next.ts'
import { paywall } from '../../src/paywall/adapters/request.ts'
import { JOKE, newShop, opened, type ShopOptions } from './shop.ts'

/** Opens a shop that sells GET /joke and publishes its price, as in docs/guides/be-found.md. Returns a function for its URLs. */
type Opening = (options: ShopOptions, service: Service) => Promise<(path: string) => string>

const express4: typeof express5 = createRequire(import.meta.url)('express4')
const urls = async (server: Server): Promise<(path: string) => string> => (await opened(server, newShop())).url
const listening = (listener: Parameters<typeof createServer>[1]): Server => createServer(listener).listen(0, '127.0.0.1')

const onExpress =
  (framework: typeof express5): Opening =>
  async (options, service) => {
    const app = framework()
    const joke = express.paywall(options)
    app.use(express.discovery({ ...service, routes: { 'GET /joke': joke } }))
    app.get('/joke', joke, (_request, response) => void response.send(JOKE))
    return urls(app.listen(0, '127.0.0.1'))
  }

const onNodeHttp: Opening = async (options, service) => {
  const joke = express.paywall(options)
  const documents = express.discovery({ ...service, routes: { 'GET /joke': joke } })
  const shop = listening((request, response) => {
    documents(request, response, () =>
      request.url === '/joke' ? joke(request, response, () => response.end(JOKE)) : response.writeHead(404).end(),
    )
  })
  return urls(shop)
}

const onFastify: Opening = async (options, service) => {
  const app = fastify()
  const joke = fast.paywall(options)
  app.addHook('onRequest', fast.discovery({ ...service, routes: { 'GET /joke': joke } }))
  app.get('/joke', { onRequest: joke }, async () => JOKE)
  await app.listen({ port: 0, host: '127.0.0.1' })
  return urls(app.server)
}

const onHono: Opening = async (options, service) => {
  const app = new Hono()
  const joke = hono.paywall(options)
  app.use(hono.discovery({ ...service, routes: { 'GET /joke': joke } }))
  app.get('/joke', joke, (c) => c.text(JOKE))
  return urls(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server)
}

const onKoa: Opening = async (options, service) => {
  const app = new Koa()
  const router = new Router()
  const joke = koa.paywall(options)
  app.use(koa.discovery({ ...service, routes: { 'GET /joke': joke } }))
  router.get('/joke', joke, (ctx) => {
    ctx.body = JOKE
  })
  app.use(router.routes())
  return urls(listening(app.callback()))
}

/** Decorators are applied as functions, because this repository is compiled without them. */
const onNest: Opening = async (options, service) => {
  const joke = nest.paywall(options)
  class Jokes {
    joke(): string {
      return JOKE
    }
  }
  const method = Object.getOwnPropertyDescriptor(Jokes.prototype, 'joke') as PropertyDescriptor
  for (const decorate of [Get('joke'), UseGuards(joke)]) decorate(Jokes.prototype, 'joke', method)
  Controller()(Jokes)
  class App {}
  Module({ controllers: [Jokes] })(App)
  const app = await NestFactory.create(App, new ExpressAdapter(), { logger: false })
  app.use(nest.discovery({ ...service, routes: { 'GET /joke': joke } }))
  await app.listen(0, '127.0.0.1')
  return urls(app.getHttpServer() as Server)
}

const onElysia: Opening = async (options, service) => {
  const joke = elysia.paywall(options)
  const app = new Elysia()
    .onRequest(elysia.discovery({ ...service, routes: { 'GET /joke': joke } }))
    .get('/joke', () => JOKE, joke)
    .head('/joke', () => JOKE, joke)
  return urls(listening(getRequestListener((request) => app.handle(request))))
}

/** As in the file `proxy.ts` of a Next project: Next continues to the route if the function returns no response. */
const onNext: Opening = async (options, service) => {
  const GET = next.paywall({ ...options, route: '/joke' }, () => new Response(JOKE))
  const proxy = next.discovery({ ...service, routes: { 'GET /joke': GET } })
  return urls(listening(getRequestListener((request) => proxy(request) ?? routed(request, GET))))
}

const onRequest: Opening = async (options, service) => {
  const joke = paywall(options, () => new Response(JOKE))
  const documents = web.discovery({ ...service, routes: { 'GET /joke': joke } })
  return urls(listening(getRequestListener((request) => documents(request) ?? routed(request, joke))))
}

const routed = (request: Request, handler: (request: Request) => Promise<Response>): Response | Promise<Response> =>
  new URL(request.url).pathname === '/joke' ? handler(request) : new Response('', { status: 404 })

export const FOUND_SHOPS: [name: string, open: Opening][] = [
  ['Express 5', onExpress(express5)],
  ['Express 4', onExpress(express4)],
  ['node:http', onNodeHttp],
  ['Fastify', onFastify],
  ['Hono', onHono],
  ['Koa', onKoa],
  ['Nest', onNest],
  ['Elysia', onElysia],
  ['Next', onNext],
  ['Request → Response', onRequest],
]
