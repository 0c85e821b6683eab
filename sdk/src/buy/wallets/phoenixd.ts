import type { Network } from '../../../../protocol/src/bolt11.ts'
import { isObject, toBase64, utf8Of } from '../../../../protocol/src/bytes.ts'
import { wasNeverSent } from '../../unreachable.ts'
import { PurchaseError } from '../errors.ts'
import type { Attempt, PaymentState, Wallet } from './wallet.ts'

/** Longer than the service's proxy waits for a payment, so that the proxy's response arrives first. */
const PAYING_MS = 150_000
const ASKING_MS = 10_000
/** phoenixd's body for a payment that it does not know. Any other 404 comes from something in front of it, or from an older version. */
const UNKNOWN_PAYMENT = 'Not found'
const NETWORKS = new Set<unknown>(['mainnet', 'testnet', 'signet', 'regtest'] satisfies Network[])

type Answer = { status: number; body: Record<string, unknown>; text: string }

/** phoenixd, or a Boltyard node, which has the same API. `password` is the full one: the restricted one cannot send payments. */
export type PhoenixdOptions = { url: string; password: string }

export class PhoenixdWallet implements Wallet {
  readonly noun = 'node'
  readonly paysOnce = true
  readonly id: string
  readonly #password: string
  #network: Network | undefined

  constructor({ url, password }: PhoenixdOptions) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username || parsed.password || parsed.search || parsed.hash)
      throw new TypeError('The wallet’s URL must look like https://boltyard.example/n/node_…, without a password or a query.')
    // An invalid header value would cause an error that quotes the header, and with it the password.
    if (typeof password !== 'string' || !/^[\x21-\x7e]+$/.test(password))
      throw new TypeError('The wallet’s password is empty, or contains a space, a line break or another invalid character.')
    this.id = url.replace(/\/+$/, '')
    this.#password = password
  }

  async network(signal: AbortSignal): Promise<Network | undefined> {
    if (this.#network) return this.#network
    try {
      const { status, body } = await this.#send('GET', '/getinfo', ASKING_MS, signal)
      if (status === 200 && NETWORKS.has(body.chain)) this.#network = body.chain as Network
    } catch (error) {
      signal.throwIfAborted()
      if (wasNeverSent(error)) throw unreachable(error)
    }
    return this.#network
  }

  async lookUp(paymentHash: string, signal: AbortSignal): Promise<PaymentState> {
    let answer: Answer
    try {
      answer = await this.#send('GET', `/payments/outgoingbyhash/${paymentHash}`, ASKING_MS, signal)
    } catch {
      signal.throwIfAborted()
      return { is: 'unknown' }
    }
    const { status, body, text } = answer
    if (status === 404 && text.trim() === UNKNOWN_PAYMENT) return { is: 'unheard' }
    if (status === 401) return { is: 'refused', error: wrongPassword() }
    if (status !== 200) return { is: 'unknown' }
    if (body.isPaid === true && typeof body.preimage === 'string') {
      const feesMsat = numberIn(body.fees)
      return {
        is: 'paid',
        paid: { preimage: body.preimage, feeSat: feesMsat === undefined ? undefined : Math.floor(feesMsat / 1000) },
      }
    }
    if (body.isPaid !== false) return { is: 'unknown' }
    const completedAtMs = numberIn(body.completedAt)
    return completedAtMs === undefined ? { is: 'pending' } : { is: 'failed', completedAtMs }
  }

  async pay(invoice: string, _paymentHash: string, signal: AbortSignal): Promise<Attempt> {
    let answer: Answer
    try {
      answer = await this.#send('POST', '/payinvoice', PAYING_MS, signal, new URLSearchParams({ invoice }))
    } catch (error) {
      signal.throwIfAborted()
      return wasNeverSent(error) ? { is: 'unsent', error: unreachable(error) } : { is: 'unknown', cause: error }
    }
    const { status, body, text } = answer
    if (status === 401) return { is: 'refused', error: wrongPassword() }
    if (isRefusal(status)) {
      const message = `The node rejected the request (HTTP ${status}): ${text.slice(0, 200).replace(/\.$/, '')}.`
      return { is: 'refused', error: new PurchaseError('unpaid', 'payment_refused', message) }
    }
    if (status === 200 && typeof body.paymentPreimage === 'string')
      return { is: 'paid', paid: { preimage: body.paymentPreimage, feeSat: numberIn(body.routingFeeSat) } }
    if (status !== 200 || typeof body.reason !== 'string') return { is: 'unknown' }
    // Already paid, or being paid by an earlier attempt: the preimage is available now or will be soon.
    if (/already been paid|another payment is in progress/.test(body.reason)) return { is: 'unknown' }
    return { is: 'failed', error: new PurchaseError('unpaid', 'payment_failed', `The node could not pay: ${body.reason}.`) }
  }

  async #send(method: string, path: string, timeoutMs: number, signal: AbortSignal, form?: URLSearchParams): Promise<Answer> {
    const authorization = `Basic ${toBase64(utf8Of(`:${this.#password}`))}`
    const response = await fetch(this.id + path, {
      method,
      headers: { authorization },
      // A redirect would send the password elsewhere.
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      ...(form ? { body: form } : {}),
    })
    const text = await response.text()
    return { status: response.status, body: objectIn(text), text }
  }
}

/** Any other status, including 408, may come from a proxy that gave up waiting, so the node may have received the request. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 408

const wrongPassword = (): PurchaseError =>
  new PurchaseError('unpaid', 'wallet_password', 'The node rejected the password. Use its full password.')

const unreachable = (cause: unknown): PurchaseError =>
  new PurchaseError('unpaid', 'wallet_unreachable', 'The paying node cannot be reached.', { cause })

const numberIn = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
