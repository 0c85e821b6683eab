import { createServer } from 'node:http'
import { Router } from '@koa/router'
import Koa from 'koa'
import { paymentOf, paywall } from '../../src/paywall/adapters/koa.ts'
import { JOKE, newShop, opened, PUBLIC, type Shop, type ShopOptions } from './shop.ts'

export async function openKoa(options: ShopOptions): Promise<Shop> {
  const app = new Koa({ proxy: true })
  app.silent = true
  const router = new Router()
  const shop = newShop()
  router.get('/jokes/:id', paywall(options), (ctx) => {
    shop.delivered++
    ctx.body = { joke: JOKE, id: ctx.params.id }
  })
  router.get('/broken', paywall(options), () => {
    throw new Error('broken')
  })
  router.get('/moved', paywall(options), (ctx) => ctx.redirect('/elsewhere'))
  router.get('/public', paywall(options), (ctx) => {
    ctx.set('Cache-Control', PUBLIC)
    ctx.body = 'public'
  })
  router.get('/missing', paywall(options), (ctx) => {
    ctx.status = shop.isRepaired ? 200 : 404
    ctx.body = 'missing'
  })
  router.get('/slow', paywall(options), async (ctx) => {
    shop.started++
    await shop.work()
    ctx.body = 'slow'
  })
  router.get('/broken-off', paywall(options), async (ctx) => {
    ctx.respond = false
    ctx.res.statusCode = 200
    ctx.res.write('half')
    await shop.work()
    if (shop.isRepaired) ctx.res.end(' and half')
    else ctx.res.destroy()
  })
  router.get('/released', paywall(options), (ctx) => {
    paymentOf(ctx)?.release('out of stock')
    ctx.body = 'sorry'
  })
  router.get('/delivered', paywall(options), (ctx) => {
    paymentOf(ctx)?.deliver()
    ctx.status = 500
    ctx.body = 'sent by mail all the same'
  })
  router.post('/echo', paywall(options), async (ctx) => {
    const chunks: Buffer[] = []
    for await (const chunk of ctx.req) chunks.push(chunk)
    ctx.body = Buffer.concat(chunks).toString()
  })
  app.use(router.routes())
  return opened(createServer(app.callback()).listen(0, '127.0.0.1'), shop)
}
