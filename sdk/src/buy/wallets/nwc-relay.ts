import { isObject } from '../../../../protocol/src/bytes.ts'
import { isGenuine, type NostrEvent } from '../crypto/nostr.ts'
import { PurchaseError } from '../errors.ts'

/** The parts of WebSocket that we use. */
export type OpenSocket = new (url: string) => Socket
type Socket = {
  send(text: string): void
  close(): void
  addEventListener(type: 'open' | 'close' | 'error', listener: () => void): void
  addEventListener(type: 'message', listener: (message: { data: unknown }) => void): void
}

/**
 * A Nostr relay. Each request uses a separate connection: a purchase makes few requests, and an idle connection would keep the
 * process running.
 */
export class Relay {
  readonly #url: string
  readonly #open: OpenSocket

  constructor(url: string, open: OpenSocket) {
    this.#url = url
    this.#open = open
  }

  /**
   * Resolves with the first genuine event that is the answer. `request`, if any, is sent after the subscription to the answer.
   * Rejects with a PurchaseError if the request was certainly not sent.
   */
  ask(filter: object, isAnswer: (event: NostrEvent) => boolean, signal: AbortSignal, request?: NostrEvent): Promise<NostrEvent> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(unreachable(signal.reason))
      const socket = new this.#open(this.#url)
      let isSent = false
      const end = (act: () => void): void => {
        signal.removeEventListener('abort', abort)
        socket.close()
        act()
      }
      const fail = (cause?: unknown): void =>
        end(() => reject(isSent ? new Error('The relay did not answer.', { cause }) : unreachable(cause)))
      const abort = (): void => fail(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      socket.addEventListener('error', () => fail())
      socket.addEventListener('close', () => fail())
      socket.addEventListener('open', () => {
        if (signal.aborted) return
        socket.send(JSON.stringify(['REQ', 'answer', filter]))
        if (!request) return
        isSent = true
        socket.send(JSON.stringify(['EVENT', request]))
      })
      socket.addEventListener('message', ({ data }) => {
        const [kind, id, third] = messageIn(data)
        if (kind === 'EVENT' && isEvent(third) && isAnswer(third) && isGenuine(third)) end(() => resolve(third))
        // The relay has sent all events that it stores, and without a request no new one is expected.
        else if (kind === 'EOSE' && !request) fail()
        // A relay that refuses the request does not pass it on.
        else if (kind === 'OK' && id === request?.id && third === false) fail(new Error('The relay refused the request.'))
      })
    })
  }
}

const unreachable = (cause: unknown): PurchaseError =>
  new PurchaseError('unpaid', 'wallet_unreachable', 'The wallet cannot be reached through its relay.', { cause })

function messageIn(data: unknown): unknown[] {
  try {
    const value: unknown = JSON.parse(String(data))
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

const isEvent = (value: unknown): value is NostrEvent =>
  isObject(value) &&
  [value.id, value.pubkey, value.sig, value.content].every((one) => typeof one === 'string') &&
  Array.isArray(value.tags) &&
  value.tags.every((tag) => Array.isArray(tag))
