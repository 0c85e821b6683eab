import 'reflect-metadata'
import type { Server } from 'node:http'
import { Controller, Get, HttpCode, HttpException, Module, Post, Req, Res, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express'
import type { Request as ExpressRequest, Response } from 'express'
import { paymentOf, paywall } from '../../src/paywall/adapters/nest.ts'
import { JOKE, newShop, opened, PUBLIC, type Shop, type ShopOptions } from './shop.ts'

type Request = ExpressRequest & { rawBody?: Buffer }

/** Decorators are applied as functions, because this repository is compiled without them. */
export async function openNest(options: ShopOptions): Promise<Shop> {
  const shop = newShop()
  class Jokes {
    joke(request: Request): object {
      shop.delivered++
      return { joke: JOKE, id: request.params.id }
    }
    broken(): void {
      throw new Error('broken')
    }
    moved(_request: Request, response: Response): void {
      response.redirect('/elsewhere')
    }
    public(_request: Request, response: Response): void {
      response.header('cache-control', PUBLIC).send('public')
    }
    missing(): string {
      if (!shop.isRepaired) throw new HttpException('missing', 404)
      return 'missing'
    }
    async slow(): Promise<string> {
      shop.started++
      await shop.work()
      return 'slow'
    }
    async brokenOff(_request: Request, response: Response): Promise<void> {
      response.write('half')
      await shop.work()
      if (shop.isRepaired) response.end(' and half')
      else response.destroy()
    }
    released(request: Request): string {
      paymentOf(request)?.release('out of stock')
      return 'sorry'
    }
    delivered(request: Request): void {
      paymentOf(request)?.deliver()
      throw new HttpException('sent by mail all the same', 500)
    }
    echo(request: Request): string {
      return request.rawBody?.toString() ?? ''
    }
  }
  const handle = (name: keyof Jokes, method: typeof Get, path: string): void => {
    const descriptor = Object.getOwnPropertyDescriptor(Jokes.prototype, name) as PropertyDescriptor
    for (const decorate of [method(path), HttpCode(200), UseGuards(paywall(options))]) decorate(Jokes.prototype, name, descriptor)
    Req()(Jokes.prototype, name, 0)
    if (Jokes.prototype[name].length > 1) Res()(Jokes.prototype, name, 1)
  }
  Controller()(Jokes)
  handle('joke', Get, 'jokes/:id')
  handle('brokenOff', Get, 'broken-off')
  for (const name of ['broken', 'moved', 'public', 'missing', 'slow', 'released', 'delivered'] as const) handle(name, Get, name)
  handle('echo', Post, 'echo')
  class App {}
  Module({ controllers: [Jokes] })(App)
  const app = await NestFactory.create<NestExpressApplication>(App, new ExpressAdapter(), { logger: false, rawBody: true })
  app.useBodyParser('text', { type: () => true, limit: '8mb' })
  app.set('trust proxy', true)
  await app.listen(0, '127.0.0.1')
  return opened(app.getHttpServer() as Server, shop)
}
