import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterAll } from 'vitest'
import { balanceOf, type Created, fund } from '../../../server/test/support/nodes.ts'
import { paywall } from '../../src/paywall/adapters/express.ts'
import { Market } from '../paywall-harness.ts'

export const GOODS = 'Sunny, 21 °C\n'
/** phoenixd's fee is 4 sat + 0.4 %, which is a whole number of satoshis for this price. */
export const [PRICE, FEE] = [250, 5]
export const ONCE = { spent: PRICE + FEE, earned: PRICE }
export const NOTHING = { spent: 0, earned: 0 }

const servers: Server[] = []
afterAll(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
})

export type Visit = {
  method: string
  path: string
  authorization: string | undefined
  body: string
  headers: NodeJS.Dict<unknown>
}

/** A market with a real paywall in front of a weather report, and a customer whose node has money. */
export class WeatherShop {
  readonly market: Market
  readonly visits: Visit[] = []
  url!: (path: string) => string
  #money: [number, number] = [0, 0]

  private constructor(market: Market) {
    this.market = market
  }

  static async open(): Promise<WeatherShop> {
    const market = await Market.open()
    await fund(market.server, market.otherNode, 1_000_000)
    const shop = new WeatherShop(market)
    await shop.#listen()
    return shop
  }

  /** The customer's node. */
  get purse(): Created {
    return this.market.otherNode
  }

  get wallet(): { endpointUrl: string; password: string } {
    return { endpointUrl: this.purse.node.endpointUrl, password: this.purse.credentials.password }
  }

  async #listen(): Promise<void> {
    const app = express()
    app.use(express.text({ type: () => true }), (request, _, next) => {
      const { method, originalUrl: path, headers } = request
      const body = typeof request.body === 'string' ? request.body : ''
      this.visits.push({ method, path, authorization: headers.authorization, body, headers })
      next()
    })
    const terms = { ...this.market.terms, amountSat: PRICE }
    app.get('/free', (_, response) => void response.send(GOODS))
    app.get('/old', (_, response) => response.redirect('/mpp'))
    app.get('/away', (request, response) => response.redirect(String(request.query.to)))
    app.all('/mpp', paywall(terms), (_, response) => void response.send(GOODS))
    app.all('/l402', paywall({ ...terms, protocol: 'l402' }), (_, response) => void response.send(GOODS))
    app.all('/both', paywall({ ...terms, protocol: 'both' }), (_, response) => void response.send(GOODS))
    app.all('/broken', paywall(terms), (_, response) => void response.status(500).send('oops'))
    const server = app.listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    server.keepAliveTimeout = 0
    this.url = (path) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  }

  /** Call it before each test. */
  async renew(): Promise<void> {
    this.visits.length = 0
    this.#money = await this.#balances()
  }

  /** What was spent and earned since `renew`. */
  async moved(): Promise<{ spent: number; earned: number }> {
    const [purse, till] = await this.#balances()
    return { spent: this.#money[0] - purse, earned: till - this.#money[1] }
  }

  #balances(): Promise<[number, number]> {
    return Promise.all([balanceOf(this.purse), balanceOf(this.market.node)])
  }
}
