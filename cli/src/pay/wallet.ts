import { createHash } from 'node:crypto'
import type { Offer } from '../../../protocol/src/offers.ts'
import type { Call } from '../call.ts'
import { Failure, usage } from '../failure.ts'
import { objectIn, readSecretOrInput } from '../files.ts'
import { sleep, wasNeverSent } from '../waiting.ts'

/** Longer than the service's proxy waits for a payment, so that the proxy's response arrives first. */
const PAYING_MS = 150_000
const ASKING_MS = 10_000
const FIRST_PAUSE_MS = 300
const LONGEST_PAUSE_MS = 5_000
/** How long to ask the node about a payment, unless --timeout is set. */
const PATIENCE_MS = 120_000
/** If the node does not know the payment after this time, the request is no longer on its way, or waits inside the node. */
const UNHEARD_MS = 5_000
/** phoenixd's body for a payment that it does not know. Any other 404 comes from something in front of it, or from an older version. */
const UNKNOWN_PAYMENT = 'Not found'

export type Paid = { preimage: string; feeSat: number | undefined }
/** The state of a payment according to the node; `unheard`: the node does not know it. */
type PaymentState =
  | { is: 'paid'; paid: Paid }
  | { is: 'failed'; completedAtMs: number }
  | { is: 'pending' }
  | { is: 'unheard' }
  | { is: 'refused' }
  | { is: 'unknown' }
type Answer = { status: number; body: Record<string, unknown>; text: string }

/**
 * The paying node, through phoenixd's API. Two things prevent double payments: a node pays a payment hash only once, and we ask it before
 * deciding.
 */
export class Wallet {
  readonly url: string
  readonly #password: string
  readonly #call: Call
  /** What the node knew before this run paid. A failed attempt from then says nothing about this run's. */
  #before: PaymentState = { is: 'unknown' }

  constructor(url: string, password: string, call: Call) {
    this.url = url.replace(/\/+$/, '')
    this.#password = password
    this.#call = call
  }

  /** The outcome of earlier attempts. A payment that is in progress is waited for. */
  async earlier({ invoice: { paymentHash } }: Pick<Offer, 'invoice'>): Promise<Paid | 'failed' | 'unheard' | 'unknown'> {
    this.#before = await this.#ask(paymentHash)
    if (this.#before.is === 'paid') return this.#before.paid
    if (this.#before.is === 'refused') throw wrongPassword()
    return this.#before.is === 'pending' ? this.#learn(paymentHash) : this.#before.is
  }

  /** Call `earlier` first. */
  async pay({ invoiceText, invoice: { paymentHash } }: Pick<Offer, 'invoiceText' | 'invoice'>): Promise<Paid> {
    let answer: Answer
    try {
      answer = await this.#send('POST', '/payinvoice', PAYING_MS, new URLSearchParams({ invoice: invoiceText }))
    } catch (error) {
      if (this.#call.signal.aborted) throw this.#call.signal.reason
      if (wasNeverSent(error))
        throw new Failure('network', 'node_unreachable', 'The paying node cannot be reached. This run paid nothing.', {
          next: 'Check --node-url, and that the node is ready.',
          cause: error,
        })
      return this.#learn(paymentHash)
    }
    const { status, body, text } = answer
    if (status === 401) return this.#unlessMade(paymentHash, wrongPassword())
    if (isRefusal(status))
      return this.#unlessMade(
        paymentHash,
        new Failure(
          'other',
          'payment_refused',
          `The node rejected the request (HTTP ${status}): ${text.slice(0, 200)} This run paid nothing.`,
        ),
      )
    if (status === 200 && typeof body.paymentPreimage === 'string')
      return proven(paymentHash, { preimage: body.paymentPreimage, feeSat: numeric(body.routingFeeSat) })
    if (status !== 200 || typeof body.reason !== 'string') return this.#learn(paymentHash)
    // Already paid, or being paid by an earlier run: the preimage is there or will be soon.
    if (/already been paid|another payment is in progress/.test(body.reason)) return this.#learn(paymentHash)
    throw new Failure('other', 'payment_failed', `The node could not pay: ${body.reason}. This run paid nothing.`)
  }

  /** The refusal may come from a proxy that had sent the request to the node before, and then tried again. */
  async #unlessMade(paymentHash: string, refusal: Failure): Promise<Paid> {
    const fate = await this.#ask(paymentHash)
    if (fate.is === 'unheard' || fate.is === 'failed') throw refusal
    return this.#learn(paymentHash)
  }

  /** Asks the node until it knows the outcome. */
  async #learn(paymentHash: string): Promise<Paid> {
    const started = performance.now()
    const deadline = started + (this.#call.number('timeout') === undefined ? PATIENCE_MS : this.#call.timeoutMs)
    for (let pauseMs = FIRST_PAUSE_MS; performance.now() < deadline; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      const fate = await this.#ask(paymentHash)
      if (fate.is === 'paid') return fate.paid
      if (fate.is === 'pending') this.#before = fate
      if (fate.is === 'failed' && this.#isNew(fate))
        throw new Failure('other', 'payment_failed', 'The payment failed. This run paid nothing.')
      if (fate.is === 'unheard' && performance.now() - started > UNHEARD_MS) {
        throw new Failure(
          'network',
          'payment_unknown',
          'The node does not know the payment, but may still make it: for example, it may be waiting for the block height.',
        )
      }
      await sleep(pauseMs, this.#call.signal)
    }
    throw new Failure('network', 'payment_unknown', 'The node does not report whether it paid. It may have.')
  }

  #isNew({ completedAtMs }: { completedAtMs: number }): boolean {
    if (this.#before.is === 'failed') return completedAtMs !== this.#before.completedAtMs
    return this.#before.is !== 'unknown'
  }

  async #ask(paymentHash: string): Promise<PaymentState> {
    try {
      const { status, body, text } = await this.#send('GET', `/payments/outgoingbyhash/${paymentHash}`, ASKING_MS)
      if (status === 404 && text.trim() === UNKNOWN_PAYMENT) return { is: 'unheard' }
      if (status === 401) return { is: 'refused' }
      if (status !== 200) return { is: 'unknown' }
      if (body.isPaid === true && typeof body.preimage === 'string') {
        const fees = numeric(body.fees)
        return {
          is: 'paid',
          paid: proven(paymentHash, {
            preimage: body.preimage,
            feeSat: fees === undefined ? undefined : Math.floor(fees / 1000),
          }),
        }
      }
      if (body.isPaid !== false) return { is: 'unknown' }
      const completedAtMs = numeric(body.completedAt)
      return completedAtMs === undefined ? { is: 'pending' } : { is: 'failed', completedAtMs }
    } catch (error) {
      if (this.#call.signal.aborted) throw this.#call.signal.reason
      if (error instanceof Failure) throw error
      return { is: 'unknown' }
    }
  }

  async #send(method: string, path: string, timeoutMs: number, form?: URLSearchParams): Promise<Answer> {
    const signal = AbortSignal.any([this.#call.signal, AbortSignal.timeout(timeoutMs)])
    const authorization = `Basic ${Buffer.from(`:${this.#password}`).toString('base64')}`
    // A redirect would send the password elsewhere.
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization },
      redirect: 'manual',
      signal,
      ...(form ? { body: form } : {}),
    }).catch((error) => {
      throw this.#call.signal.aborted ? this.#call.signal.reason : error
    })
    const text = await response.text()
    return { status: response.status, body: objectIn(text) ?? {}, text }
  }
}

/** A proxy may have sent any other status, so the node may still have received the request. 408: a proxy gave up waiting. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 408

const wrongPassword = (): Failure =>
  new Failure('key', 'node_password', 'The node rejected the password. This run paid nothing.', {
    next: 'Use the full password. The restricted one cannot send payments.',
  })

/** A wrong preimage would make a useless credential for real money, so check it before presenting it. */
function proven(paymentHash: string, paid: Paid): Paid {
  const isHex = /^[0-9a-f]{64}$/.test(paid.preimage)
  if (isHex && createHash('sha256').update(Buffer.from(paid.preimage, 'hex')).digest('hex') === paymentHash) return paid
  throw new Failure(
    'other',
    'wrong_preimage',
    'The node reports the payment as made, but its preimage does not match the invoice.',
    {
      next: `Look up the payment ${paymentHash} on the node.`,
    },
  )
}

const numeric = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** The file contains only the password, or is the file written by `nodes create --credentials-file`. */
export async function openWallet(call: Call): Promise<Wallet> {
  const path = call.text('password-file')
  if (path === undefined) throw usage('The server asks for payment, but --password-file is missing.', 'boltyard pay --help')
  const text = await readSecretOrInput(path, 'the node’s password', call.signal)
  const { password = text, endpointUrl } = objectIn(text) ?? {}
  const url = call.text('node-url') ?? endpointUrl
  if (typeof password !== 'string' || !/^[\x21-\x7e]+$/.test(password))
    throw usage('The password file does not contain a password.')
  if (typeof url !== 'string')
    throw usage('--node-url is missing. It is the endpointUrl of the paying node.', 'boltyard nodes list')
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw usage('--node-url must look like https://boltyard.example/n/node_….')
  return new Wallet(url, password, call)
}
