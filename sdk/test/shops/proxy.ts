import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createProxy } from '../../src/proxy/index.ts'
import type { Protocol } from '../../src/types.ts'
import { JOKE, newShop, opened, type Shop, type ShopOptions } from './shop.ts'

/** The shop as a program that knows nothing about payments, behind the proxy. Only for prices and texts that are constants. */
export async function openProxy({ client, onEvent, patienceMs, nodeId, maxOpenVisits, ...options }: ShopOptions): Promise<Shop> {
  const { protocol, protocols = protocol === 'both' ? ['l402', 'mpp'] : protocol && [protocol], ...terms } = options
  const shop = newShop()
  const program = createServer((request, response) => {
    if (request.url === '/echo') return request.pipe(response)
    shop.delivered++
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ joke: JOKE, id: request.url?.split('/').at(-1) }))
  })
  await opened(program.listen(0, '127.0.0.1'), shop)
  const { amountSat, l402, requiresAuth, html } = terms
  const price = { amountSat: amountSat as number, l402, requiresAuth, html, protocols: protocols as Protocol[] | undefined }
  const config = {
    listen: '127.0.0.1:0',
    upstream: `http://127.0.0.1:${(program.address() as AddressInfo).port}`,
    node: nodeId,
    limits: { openChallengesPerAddress: maxOpenVisits },
    routes: [
      { match: 'GET /jokes/:id', ...price },
      { match: 'POST /echo', ...price },
    ],
  }
  const proxy = createProxy(config, { client, onEvent, patienceMs })
  const { port } = await proxy.listen()
  program.once('close', () => void proxy.close({ graceMs: 0 }))
  if (!program.listening) await once(program, 'listening')
  return Object.assign(shop, { url: (path: string) => `http://127.0.0.1:${port}${path}` })
}
