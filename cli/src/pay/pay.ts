import { invoiceExpiresAtSeconds } from '../../../protocol/src/bolt11.ts'
import type { Offer } from '../../../protocol/src/offers.ts'
import type { Call } from '../call.ts'
import { type ExitName, Failure, usage } from '../failure.ts'
import { harmless, sat, shellWord } from '../terminal.ts'
import { sleep, wasNeverSent } from '../waiting.ts'
import { deliver, openOutput } from './answer.ts'
import { Kept, type Purchase } from './kept.ts'
import { usableOffers } from './offers.ts'
import { PaidRequest } from './request.ts'
import { openWallet, type Paid, type Wallet } from './wallet.ts'

const DEFAULT_MAX_SAT = 1_000
/** How long a server that says "not yet" is asked again, unless --timeout says so. */
const PATIENCE_MS = 90_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 8_000

/**
 * Fetch, pay, fetch again. There is one line in all of this that pays, and a run goes past it at most once. Everything that could fail
 * for reasons of ours (files, the password, where the answer goes) has been tried before it.
 */
export async function pay(call: Call): Promise<void> {
  const request = new PaidRequest(call)
  const output = openOutput(call)
  const path = call.text('credential-file')
  const kept = path === undefined ? undefined : Kept.open(path, request.url.origin)
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
  const keeping = kept ?? Kept.create(path, purchase)
  const paid = await payFor(call, offer, wallet, keeping)
  keeping.complete(offer.credentialFor(paid.preimage))
  return present(call, request, keeping, output, paid)
}

/** The first that is not too dear. The price is the invoice's own. */
function choose(call: Call, offers: Offer[]): Offer {
  const max = call.number('max-sat') ?? DEFAULT_MAX_SAT
  const offer = offers.find(({ amountSat }) => amountSat <= max)
  if (offer) return offer
  const cheapest = Math.min(...offers.map(({ amountSat }) => amountSat))
  throw new Failure('usage', 'too_expensive', `It costs ${sat(cheapest)}, and --max-sat is ${max}. Nothing was paid.`, {
    next: `If that is all right: --max-sat ${cheapest}`,
    details: { amountSat: cheapest, maxSat: max },
  })
}

/** A run that was cut off while it paid. The node knows what became of it; only if it was not paid may something else be. */
async function finishEarlier(call: Call, kept: Kept): Promise<Paid | undefined> {
  const offer = usableOffers(kept.purchase.challenge, 0).find(({ invoiceText }) => invoiceText === kept.purchase.invoice)
  if (!offer) throw new Failure('usage', 'usage', `${harmless(kept.path)} holds no challenge that can be read.`)
  const wallet = await openWallet(call)
  if (wallet.url !== kept.purchase.nodeUrl) {
    throw usage(
      `${harmless(kept.path)} is of a purchase that another node was told to pay: ${harmless(kept.purchase.nodeUrl)}`,
      'Name that one, or another file.',
    )
  }
  const earlier = await wallet.earlier(offer)
  const isOpen = earlier === undefined && invoiceExpiresAtSeconds(offer.invoice) > Date.now() / 1000
  // The same invoice rather than a fresh one: should the node get the old request after all, it still pays once.
  const paid = isOpen ? await payFor(call, choose(call, [offer]), wallet, kept) : earlier
  if (!paid) return undefined
  kept.complete(offer.credentialFor(paid.preimage))
  return paid
}

async function payFor(call: Call, offer: Offer, wallet: Wallet, kept: Kept): Promise<Paid> {
  call.spinner.show(`Paying ${sat(offer.amountSat)}`)
  try {
    return await wallet.pay(offer)
  } catch (error) {
    throw afterPaying(error, call, kept)
  }
}

/** Of every other failure it is not known. */
const NOTHING_PAID = new Set(['node_unreachable', 'node_password', 'payment_refused', 'payment_failed', 'payment_unsent'])

/** Whether it was paid decides what is left to do. Where it was not, nothing needs to be kept. */
function afterPaying(error: unknown, call: Call, kept: Kept): unknown {
  const isInterrupted = call.signal.aborted
  if (!isInterrupted && error instanceof Failure && NOTHING_PAID.has(error.code)) {
    kept.remove()
    return error
  }
  const cause =
    error instanceof Failure ? error : new Failure('network', 'payment_unknown', 'It is not known whether it was paid.')
  return new Failure(
    cause.exit,
    cause.code,
    isInterrupted ? `${cause.message} It is not known whether it was paid.` : cause.message,
    {
      next: [...cause.next, 'This asks the node, and pays only if it was not paid:', again(kept)],
      details: { outcome: 'unknown', paymentHash: kept.purchase.paymentHash, credentialFile: kept.path },
    },
  )
}

const again = ({ purchase, path }: Kept): string =>
  `boltyard pay ${shellWord(purchase.url)} --credential-file ${shellWord(path)} (and the other options as before)`

async function present(
  call: Call,
  request: PaidRequest,
  kept: Kept,
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
        `It is paid, but the server answers HTTP ${response.status}. ${text.slice(0, 300)}`,
      )
    if (paid)
      throw undelivered(
        kept,
        'conflict',
        'paid_again_refused',
        'It is paid, and the server asks for payment again. It was not paid a second time.',
      )
    throw new Failure(
      'conflict',
      'credential_refused',
      `The server no longer accepts the credential in ${harmless(kept.path)}, and asks for a new payment.`,
      {
        next: 'It is used up or has lapsed. Remove the file to pay again.',
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
      'It is paid, but the answer was cut off.',
      error,
    )
  }
  if (!kept.isWanted) kept.remove()
}

function undelivered(kept: Kept, exit: ExitName, code: string, message: string, cause?: unknown): Failure {
  return new Failure(exit, code, message, {
    cause,
    next: ['This presents the same credential again, and pays nothing:', again(kept)],
    details: { paymentHash: kept.purchase.paymentHash, credentialFile: kept.path },
  })
}

/** Until the server has an opinion. 503 and 429 say that it will have one; so does a lost answer, if asking twice is asking once. */
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
