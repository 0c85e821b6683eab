import type { Network } from '../../../../protocol/src/bolt11.ts'
import { fromHex, isObject } from '../../../../protocol/src/bytes.ts'
import { type Cipher, type NostrEvent, nip04, nip44, publicKeyOf, signEvent } from '../crypto/nostr.ts'
import { PurchaseError } from '../errors.ts'
import { type OpenSocket, Relay } from './nwc-relay.ts'
import type { Attempt, PaymentState, Wallet } from './wallet.ts'

const KIND = { info: 13_194, request: 23_194, response: 23_195 } as const
const ASKING_MS = 15_000
const PAYING_MS = 90_000
/** After these errors, the wallet did not try to pay. They say nothing about earlier attempts. */
const NOT_TRIED = new Set<unknown>([
  ...['RATE_LIMITED', 'NOT_IMPLEMENTED', 'INSUFFICIENT_BALANCE', 'QUOTA_EXCEEDED', 'RESTRICTED', 'UNAUTHORIZED'],
  ...['UNSUPPORTED_ENCRYPTION'],
])
const NETWORKS = new Set<unknown>(['mainnet', 'testnet', 'signet', 'regtest'] satisfies Network[])

export type NwcOptions = {
  /** `nostr+walletconnect://…` Anyone who has this text can spend from the wallet. */
  nwc: string
  /** Required where there is no global `WebSocket`, as in Node 20. */
  WebSocket?: OpenSocket | undefined
}
type Reply = { result: Record<string, unknown> } | { error: { code: unknown; message: string } }

/** A wallet behind Nostr Wallet Connect (NIP-47). */
export class NwcWallet implements Wallet {
  readonly noun = 'wallet'
  /** NIP-47 does not say what a wallet does with an invoice that it has paid. */
  readonly paysOnce = false
  readonly id: string
  readonly #walletKey: string
  readonly #secret: Uint8Array
  readonly #relays: Relay[]
  #cipher: Cipher | undefined
  #network: Network | undefined

  constructor({ nwc, WebSocket }: NwcOptions) {
    const { walletKey, secret, relays } = connectionIn(nwc)
    const open = WebSocket ?? (globalThis as { WebSocket?: OpenSocket }).WebSocket
    if (!open)
      throw new TypeError('There is no global WebSocket. Pass one: `{ nwc, WebSocket }`, for example from the package ws.')
    this.id = `nwc:${walletKey}:${publicKeyOf(secret)}`
    this.#walletKey = walletKey
    this.#secret = secret
    this.#relays = relays.map((url) => new Relay(url, open))
  }

  async network(signal: AbortSignal): Promise<Network | undefined> {
    if (this.#network) return this.#network
    try {
      const reply = await this.#call('get_info', {}, ASKING_MS, signal)
      if ('result' in reply && NETWORKS.has(reply.result.network)) this.#network = reply.result.network as Network
    } catch (error) {
      signal.throwIfAborted()
      // Any other error only means that the network is unknown: many connections are not allowed to call get_info.
      if (error instanceof PurchaseError) throw error
    }
    return this.#network
  }

  /** If the wallet does not know the payment, the request may still be waiting to be handled, so that counts as unknown. */
  async lookUp(paymentHash: string, signal: AbortSignal): Promise<PaymentState> {
    try {
      const reply = await this.#call('lookup_invoice', { payment_hash: paymentHash }, ASKING_MS, signal)
      if ('error' in reply) return { is: 'unknown' }
      const { preimage, settled_at, state, fees_paid, type } = reply.result
      // The wallet created this invoice itself, and reports what it received, not whether it paid.
      if (type === 'incoming') return { is: 'unknown' }
      if (state === 'failed') return { is: 'failed', completedAtMs: Date.now() }
      if (state === 'pending') return { is: 'pending' }
      if (typeof preimage !== 'string' || (settled_at == null && state !== 'settled')) return { is: 'unknown' }
      return { is: 'paid', paid: { preimage: preimage.toLowerCase(), feeSat: satOf(fees_paid) } }
    } catch {
      signal.throwIfAborted()
      return { is: 'unknown' }
    }
  }

  async pay(invoice: string, _paymentHash: string, signal: AbortSignal): Promise<Attempt> {
    let reply: Reply
    try {
      reply = await this.#call('pay_invoice', { invoice }, PAYING_MS, signal)
    } catch (error) {
      signal.throwIfAborted()
      return error instanceof PurchaseError ? { is: 'unsent', error } : { is: 'unknown', cause: error }
    }
    if ('result' in reply) {
      const { preimage, fees_paid } = reply.result
      if (typeof preimage !== 'string') return { is: 'unknown' }
      return { is: 'paid', paid: { preimage: preimage.toLowerCase(), feeSat: satOf(fees_paid) } }
    }
    const { code, message } = reply.error
    const error = new PurchaseError(
      'unpaid',
      'payment_failed',
      `The wallet could not pay: ${message.slice(0, 200).replace(/\.$/, '')}.`,
    )
    if (NOT_TRIED.has(code)) return { is: 'failed', error }
    // PAYMENT_FAILED includes timeouts, after which a payment may still arrive.
    return code === 'PAYMENT_FAILED' ? { is: 'refused', error } : { is: 'unknown', cause: error }
  }

  async #call(method: string, params: object, timeoutMs: number, signal: AbortSignal): Promise<Reply> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    const cipher = await this.#encryption(limit)
    const content = await cipher.encrypt(JSON.stringify({ method, params }))
    const expiration = String(Math.ceil((Date.now() + timeoutMs) / 1000))
    const tags = [
      ['p', this.#walletKey],
      ['expiration', expiration],
      ...(cipher.name === 'nip44_v2' ? [['encryption', cipher.name]] : []),
    ]
    const request = signEvent(this.#secret, { kind: KIND.request, tags, content })
    const filter = { kinds: [KIND.response], authors: [this.#walletKey], '#e': [request.id] }
    const isReply = (event: NostrEvent): boolean =>
      event.kind === KIND.response &&
      event.pubkey === this.#walletKey &&
      event.tags.some(([name, id]) => name === 'e' && id === request.id)
    const event = await this.#first((relay) => relay.ask(filter, isReply, limit, request))
    return replyIn(await cipher.decrypt(event.content), method)
  }

  /**
   * Asks the next relay only if the previous one certainly did not get the request. Otherwise the wallet might get it twice, and
   * take it for two requests.
   */
  async #first<T>(ask: (relay: Relay) => Promise<T>): Promise<T> {
    let last: unknown
    for (const relay of this.#relays) {
      try {
        return await ask(relay)
      } catch (error) {
        if (!(error instanceof PurchaseError)) throw error
        last = error
      }
    }
    throw last
  }

  /** The wallet's info event lists the encryptions that it supports. Older wallets list none, and support NIP-04. */
  async #encryption(signal: AbortSignal): Promise<Cipher> {
    if (this.#cipher) return this.#cipher
    const filter = { kinds: [KIND.info], authors: [this.#walletKey], limit: 1 }
    const isInfo = (event: NostrEvent): boolean => event.kind === KIND.info && event.pubkey === this.#walletKey
    const info = await this.#first((relay) => relay.ask(filter, isInfo, signal)).catch((cause) => {
      signal.throwIfAborted()
      throw new PurchaseError('unpaid', 'wallet_unreachable', 'The wallet cannot be reached through its relay.', { cause })
    })
    const known = info.tags.find(([name]) => name === 'encryption')?.[1]?.split(' ') ?? []
    const make = known.includes('nip44_v2') ? nip44 : nip04
    this.#cipher = make(this.#secret, this.#walletKey)
    return this.#cipher
  }
}

function connectionIn(text: string): { walletKey: string; secret: Uint8Array; relays: string[] } {
  // The error of `new URL` would quote the secret.
  const readable = text.replace(/^nostr\+walletconnect:(\/\/)?/, 'nwc://')
  const url = URL.canParse(readable) && readable !== text ? new URL(readable) : undefined
  const [walletKey = '', secret = ''] = [url?.hostname, url?.searchParams.get('secret') ?? undefined]
  const relays = url?.searchParams.getAll('relay') ?? []
  const isComplete = /^[0-9a-f]{64}$/.test(walletKey) && /^[0-9a-f]{64}$/.test(secret) && relays.length > 0
  if (!isComplete || !relays.every((relay) => /^wss?:\/\//.test(relay) && URL.canParse(relay)))
    throw new TypeError('The wallet’s connection must look like nostr+walletconnect://<key>?relay=wss://…&secret=<key>.')
  return { walletKey, secret: fromHex(secret), relays }
}

function replyIn(text: string, method: string): Reply {
  const reply: unknown = JSON.parse(text)
  if (!isObject(reply) || reply.result_type !== method) throw new Error('The wallet’s answer does not belong to this request.')
  if (isObject(reply.error))
    return { error: { code: reply.error.code, message: String(reply.error.message ?? reply.error.code) } }
  if (!isObject(reply.result)) throw new Error('The wallet’s answer has no result.')
  return { result: reply.result }
}

const satOf = (msat: unknown): number | undefined => (typeof msat === 'number' ? Math.ceil(msat / 1000) : undefined)
