import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import bolt11 from 'bolt11'
import { afterAll } from 'vitest'

/**
 * A shop that sells GET /report with three protocols, and POST /order if a test advertises it, with discovery and CORS. It uses none of our
 * codecs. It is sound, apart from what a test changes.
 */

type Protocol = 'mpp' | 'l402' | 'x402'
type Json = Record<string, any>
type Wish = {
  sat: number | undefined
  description?: string | undefined
  descriptionHash?: string | undefined
  timestamp: number
  expirySeconds: number
  prefix: string
  privateKey: string
  paymentHash: string
}
type Reply = { status: number; headers?: Record<string, string | string[]>; body?: string; isEndless?: true }

/** Each changes one part of what the shop sends. */
export type Faults = {
  invoice?: (wish: Wish, protocol: Protocol) => Wish
  invoiceText?: (invoice: string, protocol: Protocol) => string
  request?: (request: Json) => Json
  parameters?: (parameters: Record<string, string>) => Record<string, string>
  identifier?: (bytes: Buffer) => Buffer
  l402?: (challenge: string) => string
  x402?: (required: Json) => Json
  headers?: (headers: Record<string, string | string[]>) => Record<string, string | string[]>
  openapi?: (document: Json) => unknown
  l402Json?: (document: Json) => unknown
  /** Responds instead of the shop, unless it returns undefined. */
  serve?: (request: IncomingMessage, shop: Shop) => Reply | undefined
}

export const PRICE_SAT = 25
const EXPIRY_SECONDS = 300
const DESCRIPTION = 'A report'
const PRIVATE_KEY = '1'.padStart(64, '0')
/** The public keys of the private keys 1 and 2. */
export const NODE_KEY = '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'
export const OTHER_KEY = '02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5'
const MAINNET = 'lnbtc:000000000019d6689c085ae165831e93'

export const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')

/** Keys in order, which is all that canonical JSON needs here. */
export const sorted = (value: any): any =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
        Object.keys(value)
          .sort()
          .map((key) => [key, sorted(value[key])]),
      )
export const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export class Shop {
  readonly visits: { method: string; url: string; headers: Json }[] = []
  readonly faults: Faults
  origin = ''

  constructor(faults: Faults = {}) {
    this.faults = faults
  }

  static async open(faults: Faults = {}): Promise<Shop> {
    const shop = new Shop(faults)
    const server = createServer((request, response) => {
      const { method = '', url = '', headers } = request
      shop.visits.push({ method, url, headers })
      request.resume().once('end', () => {
        const { status, headers: fields, body = '', isEndless } = faults.serve?.(request, shop) ?? shop.#reply(request)
        response.writeHead(status, fields)
        if (isEndless) response.write(body)
        else response.end(body)
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    afterAll(() => {
      server.close()
      server.closeAllConnections()
    })
    shop.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return shop
  }

  #reply({ method = '', url = '', headers }: IncomingMessage): Reply {
    const json = (value: unknown): Reply => ({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(value),
    })
    if (url === '/openapi.json') return json((this.faults.openapi ?? ((one) => one))(openapi()))
    if (url === '/.well-known/l402.json') return json((this.faults.l402Json ?? ((one) => one))(l402Json()))
    if (url === '/llms.txt') return { status: 200, headers: { 'content-type': 'text/plain' }, body: '# Reports' }
    if (url !== '/report' && url !== '/order') return { status: 404 }
    const cors = { 'access-control-allow-origin': '*' }
    if (method === 'OPTIONS')
      return { status: 204, headers: { ...cors, 'access-control-allow-headers': 'authorization, payment-signature' } }
    if (headers.authorization && headers['payment-signature']) return { status: 400 }
    return this.paymentRequired(method, url)
  }

  paymentRequired(method: string, path: string): Reply {
    const exposed = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'WWW-Authenticate, PAYMENT-REQUIRED' }
    const headers = {
      ...exposed,
      'www-authenticate': [this.#l402(), this.#mpp()],
      'payment-required': this.#x402(method, this.origin + path),
      'cache-control': 'no-store',
      link: '</openapi.json>; rel="service-desc"',
    }
    return { status: 402, headers: (this.faults.headers ?? ((one) => one))(headers) }
  }

  #invoice(protocol: Protocol, more: Partial<Wish>): { invoice: string; paymentHash: string; wish: Wish } {
    const plain: Wish = {
      sat: PRICE_SAT,
      timestamp: Math.floor(Date.now() / 1000),
      expirySeconds: EXPIRY_SECONDS,
      prefix: 'bc',
      privateKey: PRIVATE_KEY,
      paymentHash: randomBytes(32).toString('hex'),
      ...more,
    }
    const wish = this.faults.invoice?.(plain, protocol) ?? plain
    const text = invoiceOf(wish)
    return { invoice: this.faults.invoiceText?.(text, protocol) ?? text, paymentHash: wish.paymentHash, wish }
  }

  #mpp(): string {
    const { invoice, paymentHash, wish } = this.#invoice('mpp', { description: DESCRIPTION })
    const methodDetails = { invoice, network: 'mainnet', paymentHash }
    const request = { amount: String(PRICE_SAT), currency: 'sat', description: DESCRIPTION, methodDetails }
    const changed = sorted(this.faults.request?.(request) ?? request)
    const parameters = {
      id: randomBytes(32).toString('base64url'),
      realm: 'shop.example',
      method: 'lightning',
      intent: 'charge',
      request: base64url(changed),
      expires: new Date((wish.timestamp + wish.expirySeconds) * 1000).toISOString(),
    }
    const sent = this.faults.parameters?.(parameters) ?? parameters
    return `Payment ${Object.entries(sent)
      .map(([name, value]) => `${name}="${value}"`)
      .join(', ')}`
  }

  #l402(): string {
    const { invoice, paymentHash } = this.#invoice('l402', { description: DESCRIPTION })
    const plain = Buffer.concat([Buffer.of(0, 0), Buffer.from(paymentHash, 'hex'), randomBytes(32)])
    const identifier = this.faults.identifier?.(plain) ?? plain
    const macaroon = Buffer.concat([Buffer.of(2, 2, identifier.length), identifier, Buffer.of(0, 0, 6, 32), randomBytes(32)])
    const challenge = `L402 macaroon="${macaroon.toString('base64')}", invoice="${invoice}"`
    return this.faults.l402?.(challenge) ?? challenge
  }

  #x402(method: string, url: string): string {
    const bodyHash = sha256('')
    const binding = { bodyHash, domain: 'x402:exact:lnbtc:bolt11:http:1', headers: [], method, url }
    const requestHash = sha256(JSON.stringify(binding))
    const { invoice } = this.#invoice('x402', { descriptionHash: requestHash })
    const requirements = {
      scheme: 'exact',
      network: MAINNET,
      amount: `${PRICE_SAT}000`,
      asset: 'BTC',
      payTo: NODE_KEY,
      maxTimeoutSeconds: EXPIRY_SECONDS,
      extra: {
        paymentFlow: 'upfront',
        requestHash,
        requestBindingProfile: 'http:1',
        requestBindingParams: { headers: [] },
        invoice,
      },
    }
    const required = { x402Version: 2, resource: { url }, accepts: [requirements] }
    return Buffer.from(JSON.stringify(this.faults.x402?.(required) ?? required)).toString('base64')
  }
}

function invoiceOf({
  sat,
  description,
  descriptionHash,
  timestamp,
  expirySeconds,
  prefix,
  privateKey,
  paymentHash,
}: Wish): string {
  const tags = [
    { tagName: 'payment_hash', data: paymentHash },
    ...(description === undefined ? [] : [{ tagName: 'description', data: description }]),
    ...(descriptionHash === undefined ? [] : [{ tagName: 'purpose_commit_hash', data: descriptionHash }]),
    { tagName: 'expire_time', data: expirySeconds },
  ]
  const network = { bech32: prefix, pubKeyHash: 0, scriptHash: 5, validWitnessVersions: [0] }
  const amount = sat === undefined ? {} : { millisatoshis: String(sat * 1000) }
  return bolt11.sign(bolt11.encode({ network, timestamp, tags, ...amount } as any, false), privateKey).paymentRequest ?? ''
}

/** Advertises POST /order too, as a value of the fault `openapi`. */
export const withOrder = (document: Json): Json => ({
  ...document,
  paths: { ...document.paths, '/order': { post: document.paths['/report'].get } },
})

const openapi = (): Json => {
  const sold = {
    'x-payment-info': { offers: [{ intent: 'charge', method: 'lightning', amount: String(PRICE_SAT) }] },
    responses: { 402: { description: 'Payment Required' } },
  }
  return { openapi: '3.1.0', paths: { '/report': { get: sold } } }
}

const l402Json = (): Json => ({
  version: '1.0',
  provider: { name: 'Reports', node_pubkey: NODE_KEY },
  services: [
    {
      name: 'reports',
      resources: [{ path: '/report', method: 'GET', pricing: { model: 'fixed', price_msat: PRICE_SAT * 1000 } }],
    },
  ],
})
