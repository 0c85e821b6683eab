import { invoiceExpiresAtSeconds } from '../../../protocol/src/bolt11.ts'
import type { Offer } from '../../../protocol/src/offers.ts'
import type { Call } from '../call.ts'
import { type ExitName, Failure, usage } from '../failure.ts'
import { sanitize, sat, shellWord } from '../terminal.ts'
import { sleep, wasNeverSent } from '../waiting.ts'
import { deliver, openOutput } from './answer.ts'
import { usableOffers } from './offers.ts'
import { PaidRequest } from './request.ts'
import { type Purchase, SavedPurchase } from './saved-purchase.ts'
import { openWallet, type Paid, type Wallet } from './wallet.ts'

const DEFAULT_MAX_SAT = 1_000
/** How long to keep retrying a server that responds with 503 or 429, unless --timeout is set. */
const PATIENCE_MS = 90_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 8_000

/**
 * Fetch, pay, fetch again. Only one line pays, and a run reaches it at most once. Everything on our side that could fail (files, the
 * password, the output) is checked before that line.
 */
export async function pay(call: Call): Promise<void> {
  const request = new PaidRequest(call)
  const output = openOutput(call)
  const path = call.text('credential-file')
  const kept = path === undefined ? undefined : SavedPurchase.open(path, request.url.origin)
  call.spinner.show(`Fetching ${request.url.host}`)
  if (kept?.purchase.credential !== undefined) return present(call, request, kept, output)

  const earlier = kept && (await finishEarlier(call, kept))
  if (kept && earlier) return present(call, request, kept, output, earlier)

  const response = await request.ask()
  if (response.status !== 402) return deliver(call, response, output, exitOf(response.status))
  await response.body?.cancel()
  const offer = choose(call, usableOffers(response.headers.get('www-authenticate') ?? ''))
  const wallet = await openWallet(call)
  const purchase: Purchase = {
    url: request.url.href,
    nodeUrl: wallet.url,
    challenge: response.headers.get('www-authenticate') ?? '',
    invoice: offer.invoiceText,
    paymentHash: offer.invoice.paymentHash,
    amountSat: offer.amountSat,
  }
  kept?.replace(purchase)
  const keeping = kept ?? SavedPurchase.create(path, purchase)
  const paid = await payFor(call, offer, wallet, keeping)
  keeping.complete(offer.credentialFor(paid.preimage))
  return present(call, request, keeping, output, paid)
}

/** The first offer within --max-sat, judged by the invoice's own amount. */
function choose(call: Call, offers: Offer[]): Offer {
  const max = call.number('max-sat') ?? DEFAULT_MAX_SAT
  const offer = offers.find(({ amountSat }) => amountSat <= max)
  if (offer) return offer
  const cheapest = Math.min(...offers.map(({ amountSat }) => amountSat))
  throw new Failure('usage', 'too_expensive', `The price is ${sat(cheapest)}, but --max-sat is ${max}. Nothing was paid.`, {
    next: `To accept the price: --max-sat ${cheapest}`,
    details: { amountSat: cheapest, maxSat: max },
  })
}

/** Resumes a run that was interrupted while paying. The node knows the outcome; pay only if the invoice was not paid. */
async function finishEarlier(call: Call, kept: SavedPurchase): Promise<Paid | undefined> {
  const offer = usableOffers(kept.purchase.challenge, 0).find(({ invoiceText }) => invoiceText === kept.purchase.invoice)
  if (!offer) throw new Failure('usage', 'usage', `${sanitize(kept.path)} does not contain a valid challenge.`)
  const wallet = await openWallet(call)
  if (wallet.url !== kept.purchase.nodeUrl) {
    throw usage(
      `${sanitize(kept.path)} belongs to a purchase that another node was asked to pay: ${sanitize(kept.purchase.nodeUrl)}`,
      'Use that node, or another file.',
    )
  }
  const earlier = await wallet.earlier(offer)
  const isOpen = earlier === undefined && invoiceExpiresAtSeconds(offer.invoice) > Date.now() / 1000
  // Pay the same invoice, not a new one: if the old request still reaches the node, it pays only once.
  const paid = isOpen ? await payFor(call, choose(call, [offer]), wallet, kept) : earlier
  if (!paid) return undefined
  kept.complete(offer.credentialFor(paid.preimage))
  return paid
}

async function payFor(call: Call, offer: Offer, wallet: Wallet, kept: SavedPurchase): Promise<Paid> {
  call.spinner.show(`Paying ${sat(offer.amountSat)}`)
  try {
    return await wallet.pay(offer)
  } catch (error) {
    throw afterPaying(error, call, kept)
  }
}

/** After these failures, it is certain that nothing was paid. After all others, the outcome is unknown. */
const NOTHING_PAID = new Set(['node_unreachable', 'node_password', 'payment_refused', 'payment_failed', 'payment_unsent'])

/** If nothing was paid, the file is not needed. Otherwise the error says how to continue. */
function afterPaying(error: unknown, call: Call, kept: SavedPurchase): unknown {
  const isInterrupted = call.signal.aborted
  if (!isInterrupted && error instanceof Failure && NOTHING_PAID.has(error.code)) {
    kept.remove()
    return error
  }
  const cause = error instanceof Failure ? error : new Failure('network', 'payment_unknown', 'The payment may have been made.')
  return new Failure(cause.exit, cause.code, isInterrupted ? `${cause.message} The payment may have been made.` : cause.message, {
    next: [...cause.next, 'To ask the node, and pay only if it has not paid yet:', again(kept)],
    details: { outcome: 'unknown', paymentHash: kept.purchase.paymentHash, credentialFile: kept.path },
  })
}

const again = ({ purchase, path }: SavedPurchase): string =>
  `boltyard pay ${shellWord(purchase.url)} --credential-file ${shellWord(path)} (with the same other options)`

async function present(
  call: Call,
  request: PaidRequest,
  kept: SavedPurchase,
  output: ReturnType<typeof openOutput>,
  paid?: Paid,
): Promise<void> {
  call.spinner.show(`Fetching ${request.url.host}`)
  let response: Response
  try {
    response = await untilHeard(call, request, kept.purchase.credential ?? '')
  } catch (error) {
    const cause =
      error instanceof Failure
        ? error
        : new Failure('network', 'connection_failed', `${request.url.host} could not be reached.`, { cause: error })
    throw undelivered(kept, cause.exit, cause.code, cause.message)
  }
  if (!response.ok) {
    const text = await response.text().catch(() => '')
    if (response.status !== 402)
      throw undelivered(
        kept,
        exitOf(response.status) ?? 'other',
        'not_delivered',
        `You paid, but the server returned HTTP ${response.status}. ${text.slice(0, 300)}`,
      )
    if (paid)
      throw undelivered(
        kept,
        'conflict',
        'paid_again_refused',
        'You paid, but the server asks for payment again. No second payment was made.',
      )
    throw new Failure(
      'conflict',
      'credential_refused',
      `The server no longer accepts the credential in ${sanitize(kept.path)} and asks for a new payment.`,
      {
        next: 'The credential has been used or has expired. Remove the file to pay again.',
      },
    )
  }
  try {
    await deliver(call, response, output, undefined, { kept: kept.purchase, paid })
  } catch (error) {
    throw undelivered(
      kept,
      call.signal.aborted ? 'interrupted' : 'network',
      'cut_off',
      'You paid, but the response was cut off.',
      error,
    )
  }
  if (!kept.isWanted) kept.remove()
}

function undelivered(kept: SavedPurchase, exit: ExitName, code: string, message: string, cause?: unknown): Failure {
  return new Failure(exit, code, message, {
    cause,
    next: ['To present the same credential again without paying:', again(kept)],
    details: { paymentHash: kept.purchase.paymentHash, credentialFile: kept.path },
  })
}

/** Retries 503 and 429. Also retries after a lost response, if the request is safe to repeat. */
async function untilHeard(call: Call, request: PaidRequest, credential: string): Promise<Response> {
  const deadline = Date.now() + (call.number('timeout') === undefined ? PATIENCE_MS : call.timeoutMs)
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    const answer = await request.send(credential).catch((error: unknown) => {
      if (call.signal.aborted || !(request.isRepeatable || wasNeverSent(error))) throw error
      return { error }
    })
    const isHeard = 'status' in answer && answer.status !== 503 && answer.status !== 429
    const seconds = 'status' in answer ? Number(answer.headers.get('retry-after') ?? Number.NaN) : Number.NaN
    const waitMs = Number.isFinite(seconds) && seconds >= 0 ? Math.max(seconds * 1000, pauseMs) : pauseMs
    if (isHeard || Date.now() + waitMs > deadline) {
      if ('error' in answer) throw answer.error
      return answer
    }
    if ('status' in answer) await answer.body?.cancel()
    await sleep(waitMs, call.signal)
  }
}

function exitOf(status: number): ExitName | undefined {
  if (status >= 200 && status < 300) return undefined
  return status === 404 ? 'notFound' : status === 429 ? 'rateLimited' : status >= 500 ? 'network' : 'other'
}
