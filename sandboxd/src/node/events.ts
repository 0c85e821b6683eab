import { createHmac } from 'node:crypto'
import { lookup } from 'node:dns'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, isIP, isIPv6, type LookupFunction } from 'node:net'
import { deductedMsat, type Incoming } from './ledger.ts'

export type PaymentReceived = {
  type: 'payment_received'
  timestamp: number
  amountSat: number
  paymentHash: string
  externalId: string | null
  payerNote: null
  payerKey: null
}

const WEBHOOK_TIMEOUT_MS = 10_000
/** Calls to one URL are sent one at a time. If a receiver hangs, events beyond this number are dropped to bound the memory. */
const MAX_WAITING_CALLS = 1_000
const FOREIGN = 'a sandbox node calls only the URL in sandbox-callback, and loopback addresses if sandbox-webhook-loopback=true'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

function isLoopback(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  return LOOPBACK.check(mapped ?? address, !mapped && isIPv6(address) ? 'ipv6' : 'ipv4')
}

export function paymentReceived({ invoice, received }: Incoming, timestamp: number): PaymentReceived {
  const netMsat = received ? received.amountMsat - deductedMsat(received) : 0
  return {
    type: 'payment_received',
    timestamp,
    amountSat: Math.floor(netMsat / 1000),
    paymentHash: invoice.paymentHash,
    externalId: invoice.externalId ?? null,
    payerNote: null,
    payerKey: null,
  }
}

/** As in phoenixd, one attempt per event and URL, in order, and the receiver's response is ignored. The gateway must not rely on more. */
export class Webhooks {
  readonly #secret: string
  readonly #allowed: { callbackOrigin: string | undefined; webhooksToLoopback: boolean }
  readonly #log: (line: string) => void
  readonly #waiting = new Map<string, string[]>()

  constructor(
    secret: string,
    allowed: { callbackOrigin: string | undefined; webhooksToLoopback: boolean },
    log: (line: string) => void,
  ) {
    this.#secret = secret
    this.#allowed = allowed
    this.#log = log
  }

  send(url: string, event: PaymentReceived): void {
    const body = JSON.stringify(event, null, 4)
    const waiting = this.#waiting.get(url)
    if (!waiting) {
      this.#waiting.set(url, [body])
      void this.#drain(url)
    } else if (waiting.length < MAX_WAITING_CALLS) waiting.push(body)
    else this.#log('webhook failure: too many calls are waiting')
  }

  async #drain(url: string): Promise<void> {
    const waiting = this.#waiting.get(url) ?? []
    for (let body = waiting.shift(); body !== undefined; body = waiting.shift()) await this.#call(url, body)
    this.#waiting.delete(url)
  }

  /** Never rejects: a failed webhook is only logged. */
  #call(url: string, body: string): Promise<void> {
    return new Promise((resolve) => {
      const failed = (error: Error): void => {
        this.#log(`webhook failure: ${error.message}`)
        resolve()
      }
      try {
        const target = new URL(url)
        this.#refuseForeignAddress(target)
        const request = target.protocol === 'https:' ? httpsRequest : httpRequest
        const outgoing = request(target, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
            'x-phoenix-signature': createHmac('sha256', this.#secret).update(body).digest('hex'),
          },
          lookup: this.#guardedLookup(target),
          signal: AbortSignal.timeout(WEBHOOK_TIMEOUT_MS),
        })
        outgoing.on('error', failed)
        // Wait only for the headers: an endless body must not delay the next event.
        outgoing.on('response', (response) => {
          response.destroy()
          resolve()
        })
        outgoing.end(body)
      } catch (error) {
        failed(error as Error)
      }
    })
  }

  #allows(target: URL, address: string): boolean {
    const { callbackOrigin, webhooksToLoopback } = this.#allowed
    // Other services on a shared machine's loopback may trust anyone who can reach them.
    return target.origin === callbackOrigin || (webhooksToLoopback && isLoopback(address))
  }

  /** A literal IP address is never resolved, so it is checked here. */
  #refuseForeignAddress(target: URL): void {
    const host = target.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !this.#allows(target, host)) throw new Error(FOREIGN)
  }

  /** The name is resolved once and that address is used, because a second lookup could return a different one. */
  #guardedLookup(target: URL): LookupFunction {
    return (hostname, options, callback) => {
      lookup(hostname, { family: options.family ?? 0, all: true }, (error, addresses) => {
        if (error) return callback(error, '', 0)
        const [first] = addresses
        if (!first || !addresses.every(({ address }) => this.#allows(target, address))) return callback(new Error(FOREIGN), '', 0)
        // Use all addresses: "localhost" may resolve to ::1 first while the receiver listens on 127.0.0.1.
        if (options.all) return callback(null, addresses)
        callback(null, first.address, first.family)
      })
    }
  }
}
