import type { IncomingMessage, ServerResponse } from 'node:http'
import { toHex } from '../../../protocol/src/bytes.ts'
import type { Boltyard } from '../boltyard.ts'
import { bodyOf, discardBody, linesOf, type NodeRequest, paymentFieldsOf } from '../paywall/adapters/node-request.ts'
import { follow, whileConnected } from '../paywall/adapters/node-response.ts'
import { advertise } from '../paywall/advertised.ts'
import { type Answer, bodyTooLarge, bodyTooSlow } from '../paywall/answers.ts'
import { type BindOptions, bindRequest } from '../paywall/binding.ts'
import { findCredential } from '../paywall/credentials.ts'
import { sha256Bytes } from '../paywall/digest.ts'
import type { EventHook } from '../paywall/events.ts'
import { BodyMemory } from '../paywall/gate/body-memory.ts'
import type { Delivery } from '../paywall/gate/delivery.ts'
import { Gate, PATIENCE_MS, type Pass } from '../paywall/gate/gate.ts'
import type { PaywallOptions } from '../paywall/options.ts'
import { hasProof } from '../paywall/proof.ts'
import type { RequestTarget } from './config/path.ts'
import type { Route } from './config/route.ts'
import type { Settings } from './config/settings.ts'
import type { Client } from './http/forwarded.ts'
import { askPrice, type Price } from './http/price.ts'
import { failure, hasBody, RETRY_AFTER_SECONDS, respond } from './http/respond.ts'

/** A request on its way through the proxy. */
export type Incoming = {
  request: IncomingMessage
  response: ServerResponse
  target: RequestTarget
  client: Client
  /** Sends `100 Continue` to a client that waits for it. */
  askForBody: () => void
}

type Buyer = { incoming: Incoming; price: Price | undefined }
type Visited = Parameters<Gate<Buyer>['decide']>[0]
/** `delivery` is undefined for OPTIONS that the upstream handles. */
export type Passed = { delivery: Delivery | undefined }

export type PaidOptions = { client: Boltyard; onEvent: EventHook | undefined; patienceMs: number | undefined }

/** A route with a price, and the paywall in front of it. */
export class PaidRoute {
  readonly #route: Route
  readonly #gate: Gate<Buyer>
  readonly #maxBodyBytes: number
  readonly #patienceMs: number

  constructor(route: Route, settings: Settings, { client, onEvent, patienceMs }: PaidOptions) {
    const { config, listed } = route
    const { nodeId, maxOpenVisits, maxBodyBytes, publicUrl, documents } = settings
    const { protocols, l402, requiresAuth, bindHeaders, priceTolerance, holdSeconds, releaseOnDisconnect, html, options } = config
    const { amountSat, resource } = config
    const text = listed.description ?? config.match
    this.#route = route
    this.#maxBodyBytes = maxBodyBytes
    this.#patienceMs = patienceMs ?? PATIENCE_MS
    const paywall: PaywallOptions<Buyer> = {
      client,
      nodeId,
      amountSat: amountSat ?? (({ price }) => price?.amountSat ?? 0),
      description: config.priceFrom === undefined ? text : ({ price }) => price?.description ?? text,
      ...{
        resource,
        protocols,
        l402,
        requiresAuth,
        bindHeaders,
        priceTolerance,
        holdSeconds,
        releaseOnDisconnect,
        html,
        options,
      },
      ...{ publicUrl, maxBodyBytes, maxOpenVisits, onEvent, patienceMs },
    }
    if (documents) advertise(paywall, documents.link)
    this.#gate = new Gate(paywall, 'proxy')
  }

  ready(): Promise<void> {
    return this.#gate.ready()
  }

  settled(): Promise<void> {
    return this.#gate.settled()
  }

  /** Passes a reusable credential that was accepted recently, without a promise. */
  recall(incoming: Incoming): Passed | undefined {
    return this.#passed(incoming, this.#gate.recall(this.#visitOf(incoming, undefined)))
  }

  /** Undefined if a response was sent, or the customer has disconnected. */
  async admit(incoming: Incoming, methods: readonly string[]): Promise<Passed | undefined> {
    const { request, response } = incoming
    const decision = await whileConnected(response, async (signal) => {
      const price = (await this.#whole(incoming, signal)) ?? (await this.#priceOf(incoming, signal))
      if (price && 'status' in price) return { pass: false as const, ...price }
      return this.#gate.decide({ ...this.#visitOf(incoming, price), methods, signal })
    })
    if (!decision) return undefined
    if (decision.pass) return this.#passed(incoming, decision)
    discardBody(request as NodeRequest)
    respond(response, decision)
    return undefined
  }

  #passed({ response }: Incoming, pass: Pass | undefined): Passed | undefined {
    if (pass?.delivery) follow(response, pass.delivery)
    return pass && { delivery: pass.delivery }
  }

  #visitOf(incoming: Incoming, price: Price | undefined): Visited {
    const { request, client } = incoming
    const bound = this.#boundTo(incoming.target)
    return {
      method: request.method ?? 'GET',
      // The paywall derives the resource from one of these, depending on the kind of price.
      route: bound,
      url: bound,
      ...paymentFieldsOf(request.headers),
      clientAddress: client.address,
      trustAdvice: 'set `trustProxy`',
      bind: (options) => bindIncoming(incoming, options),
      request: { incoming, price },
    }
  }

  #boundTo({ path, url }: RequestTarget): string {
    const { bind } = this.#route.listed
    if (bind === 'route') return this.#route.pattern.path
    return bind === 'url' ? url : path
  }

  /** Undefined if the price is a constant, or is not needed. Otherwise the price, or the response if there is none. */
  async #priceOf(incoming: Incoming, signal: AbortSignal): Promise<Price | Answer | undefined> {
    const { request, target } = incoming
    const { priceFrom } = this.#route.config
    if (priceFrom === undefined || request.method === 'OPTIONS') return undefined
    const body = await this.#bodyOf(incoming, signal)
    if ('status' in body) return body
    const bodySha256 = toHex(body.sha256)
    // HEAD has the price of GET.
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET')
    const price = await askPrice(priceFrom, { method, url: target.url, bodySha256 }, signal)
    return price ?? failure(503, 'The price is unknown right now. Nothing was used up. Try again later.')
  }

  /**
   * With `releaseOnDisconnect: false`, reads the whole body of a paid request before forwarding it. Otherwise the upstream could
   * act on part of the body, and the customer could abort the request and use the payment again. Returns a response only if the
   * body cannot be read.
   */
  async #whole(incoming: Incoming, signal: AbortSignal): Promise<Answer | undefined> {
    const { requiresAuth = false, releaseOnDisconnect } = this.#route.config
    const { request } = incoming
    if (releaseOnDisconnect !== false || !hasBody(request)) return undefined
    const credential = findCredential(paymentFieldsOf(request.headers), requiresAuth)
    if (!credential || 'unusable' in credential) return undefined
    const body = await this.#bodyOf(incoming, signal)
    return 'status' in body ? body : undefined
  }

  /** The hash of the body, or the response if it cannot be read. */
  async #bodyOf({ request, response, askForBody }: Incoming, signal: AbortSignal): Promise<{ sha256: Uint8Array } | Answer> {
    askForBody()
    const credential = findCredential(paymentFieldsOf(request.headers), this.#route.config.requiresAuth === true)
    const hasCredential = credential !== undefined
    const memory = new BodyMemory(this.#maxBodyBytes, await hasProof(credential))
    response.once('close', () => memory.release())
    const limits = { maxBodyBytes: this.#maxBodyBytes, bodyTimeoutMs: this.#patienceMs, signal, memory }
    const body = await bodyOf(request as NodeRequest, limits)
    if (body === 'too_slow') return bodyTooSlow(hasCredential, RETRY_AFTER_SECONDS)
    if (body === 'busy')
      return failure(503, 'Too many requests with a body are in progress. Nothing was used up. Try again later.')
    if (typeof body === 'string') return bodyTooLarge(this.#maxBodyBytes)
    return 'sha256' in body ? body : { sha256: await sha256Bytes(body) }
  }
}

/** Binds an x402 payment to the request, with the URL as the client wrote it. */
function bindIncoming({ request, client, askForBody }: Incoming, options: BindOptions): ReturnType<typeof bindRequest> {
  const read = request as NodeRequest
  return bindRequest(
    {
      method: request.method ?? 'GET',
      url: request.url ?? '/',
      origin: client.host === undefined ? undefined : `${client.scheme}://${client.host}`,
      header: (name) => linesOf(read, name),
      body: (limits) => {
        askForBody()
        return bodyOf(read, limits)
      },
    },
    options,
  )
}
