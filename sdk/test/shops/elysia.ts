import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Elysia } from 'elysia'
import { paymentOf, paywall } from '../../src/paywall/adapters/elysia.ts'
import { brokenOffBody, JOKE, newShop, opened, PUBLIC, type Shop, type ShopOptions } from './shop.ts'

export async function openElysia(options: ShopOptions): Promise<Shop> {
  const shop = newShop()
  const slow = async (): Promise<string> => {
    shop.started++
    await shop.work()
    return 'slow'
  }
  const joke = ({ params }: { params: { id: string } }): object => {
    shop.delivered++
    return { joke: JOKE, id: params.id }
  }
  const app = new Elysia()
    .get('/jokes/:id', joke, paywall(options))
    .head('/jokes/:id', joke, paywall(options))
    .get(
      '/broken',
      () => {
        throw new Error('broken')
      },
      paywall(options),
    )
    .get(
      '/public',
      ({ set }) => {
        set.headers['cache-control'] = PUBLIC
        return 'public'
      },
      paywall(options),
    )
    .get('/moved', () => new Response(null, { status: 302, headers: { location: '/elsewhere' } }), paywall(options))
    .head('/public', () => 'public', paywall(options))
    .get('/missing', ({ status }) => status(shop.isRepaired ? 200 : 404, 'missing'), paywall(options))
    .get('/slow', slow, paywall(options))
    .head('/slow', slow, paywall(options))
    .get('/broken-off', () => new Response(brokenOffBody(shop)), paywall(options))
    .get(
      '/released',
      ({ request }) => {
        paymentOf(request)?.release('out of stock')
        return 'sorry'
      },
      paywall(options),
    )
    .get(
      '/delivered',
      ({ request, status }) => {
        paymentOf(request)?.deliver()
        return status(500, 'sent by mail all the same')
      },
      paywall(options),
    )
    .post('/echo', ({ body }) => String(body ?? ''), paywall(options))
  return opened(createServer(getRequestListener((request) => app.handle(request))).listen(0, '127.0.0.1'), shop)
}
