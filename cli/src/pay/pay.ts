import { readInvoice } from '../../../protocol/src/bolt11.ts'
import type { Offer } from '../../../protocol/src/offers.ts'
import type { BuyerCrypto } from '../../../sdk/src/buy/crypto/crypto.ts'
import { nodeCrypto } from '../../../sdk/src/buy/crypto/node.ts'
import { PurchaseError } from '../../../sdk/src/buy/errors.ts'
import { type FoundOffer, isStillOffered, keptOffer, offersIn } from '../../../sdk/src/buy/offers.ts'
import type { RepeatableRequest } from '../../../sdk/src/buy/request.ts'
import { mayReplace, settle as settleWith } from '../../../sdk/src/buy/settle.ts'
import type { Lock } from '../../../sdk/src/buy/store/lock.ts'
import type { Paid, Wallet } from '../../../sdk/src/buy/wallets/wallet.ts'
import type { Call } from '../call.ts'
import { Failure, usage } from '../failure.ts'
import { isSystemError, reasonOf } from '../files.ts'
import { sanitize, sat } from '../terminal.ts'
import { deliver, type Output, openOutput } from './answer.ts'
import { again, exitOf, present } from './present.ts'
import { lockPurchase, removeUnpaid, requireHeld } from './purchase-lock.ts'
import { ask, requestOf } from './request.ts'
import { type Purchase, SavedPurchase } from './saved-purchase.ts'
import { explainPurchase, openWallet } from './wallet.ts'

const DEFAULT_MAX_SAT = 1_000

/**
 * Fetches, pays and fetches again with parts of the SDK's buyer. They are combined differently here: the user names the file of a purchase,
 * and the purchase counts as delivered once the output is written. Only one line pays, and a run reaches it at most once. Whatever could
 * fail on this machine (files, the password, the output) is checked before that line.
 */
export async function pay(call: Call): Promise<void> {
  const request = requestOf(call)
  const output = openOutput(call)
  const path = call.text('credential-file')
  call.spinner.show(path === undefined ? `Fetching ${request.url.host}` : `Waiting for other runs with ${sanitize(path)}`)
  const lock = path === undefined ? undefined : await lockPurchase(path, call.signal)
  try {
    await payLocked(call, { request, output, path, lock })
  } finally {
    await lock?.remove()
  }
}

type Run = { request: RepeatableRequest; output: Output; path: string | undefined; lock: Lock | undefined }

async function payLocked(call: Call, { request, output, path, lock }: Run): Promise<void> {
  const kept = path === undefined ? undefined : SavedPurchase.open(path, request.url.origin)
  call.spinner.show(`Fetching ${request.url.host}`)
  if (kept?.purchase.credential !== undefined) return present(call, request, kept, output)

  const earlier = kept && (await finishEarlier(call, request, kept, lock))
  if (kept && earlier) return present(call, request, kept, output, earlier)

  const response = await ask(request)
  if (response.status !== 402) return deliver(call, response, output, exitOf(response.status))
  await response.body?.cancel()
  const offer = choose(call, offersOf(response, request))
  const wallet = await openWallet(call)
  const purchase: Purchase = {
    url: request.url.href,
    nodeUrl: wallet.id,
    challenge: offer.challenge,
    invoice: offer.invoiceText,
    paymentHash: offer.invoice.paymentHash,
    amountSat: offer.amountSat,
    header: offer.header,
  }
  await requireHeld(lock)
  if (kept) await replace(kept, purchase, offer, lock)
  const keeping = kept ?? SavedPurchase.create(path, purchase)
  if (keeping.purchase.credential !== undefined) return present(call, request, keeping, output)
  requireSameNode(wallet, keeping)
  const paid = await settle(call, offer, wallet, keeping, lock, () => requireHeld(lock))
  if (!paid) {
    if (!keeping.isResumed) await removeUnpaid(keeping, lock)
    throw new Failure('other', 'payment_failed', 'The invoice expired before it could be paid. This run paid nothing.')
  }
  return present(call, request, keeping, output, paid)
}

function crypto(): BuyerCrypto {
  const found = nodeCrypto()
  if (!found)
    throw new Failure(
      'other',
      'no_crypto',
      'boltyard pay requires Node.js with secp256k1 in node:crypto, as in the official builds.',
    )
  return found
}

function offersOf({ headers }: Response, request: RepeatableRequest): FoundOffer[] {
  try {
    return offersIn(crypto(), headers, request.bound)
  } catch (error) {
    throw error instanceof PurchaseError ? new Failure('other', error.code, error.message) : error
  }
}

async function replace(kept: SavedPurchase, purchase: Purchase, offer: Offer, lock: Lock | undefined): Promise<void> {
  const old = readInvoice(kept.purchase.invoice)
  if (!old || !mayReplace(old, offer))
    throw new Failure(
      'network',
      'payment_unknown',
      'The earlier invoice has not expired yet by the seller’s clock. This run paid nothing.',
      {
        next: 'Try again in a few minutes.',
        details: { outcome: 'unknown', paymentHash: kept.purchase.paymentHash, credentialFile: kept.path },
      },
    )
  await kept.replace(purchase, () => requireHeld(lock))
}

/** The first offer within --max-sat, judged by the invoice's own amount. */
function choose<O extends Offer>(call: Call, offers: O[], soFar = 'Nothing was paid.'): O {
  const max = call.number('max-sat') ?? DEFAULT_MAX_SAT
  const offer = offers.find(({ amountSat }) => amountSat <= max)
  if (offer) return offer
  const cheapest = Math.min(...offers.map(({ amountSat }) => amountSat))
  throw new Failure('usage', 'too_expensive', `The price is ${sat(cheapest)}, but --max-sat is ${max}. ${soFar}`, {
    next: `To accept the price: --max-sat ${cheapest}`,
    details: { amountSat: cheapest, maxSat: max },
  })
}

/** Resumes a run that was interrupted while paying. The node knows the outcome; pay only if the invoice was not paid. */
async function finishEarlier(
  call: Call,
  request: RepeatableRequest,
  kept: SavedPurchase,
  lock: Lock | undefined,
): Promise<Paid | undefined> {
  const offer = keptOffer(crypto(), kept.offer)
  if (!offer) throw new Failure('usage', 'usage', `${sanitize(kept.path)} does not contain a valid challenge.`)
  const wallet = await openWallet(call)
  requireSameNode(wallet, kept)
  return settle(call, offer, wallet, kept, lock, async () => {
    await requireHeld(lock)
    if (isStillOffered(crypto(), kept.offer, request.bound)) return
    throw new Failure(
      'network',
      'payment_unknown',
      'The server would no longer accept the payment: the challenge has expired, or is for a request with other headers. This run paid nothing.',
      { next: 'When the invoice has expired too, the same command gets a new one.' },
    )
  })
}

function requireSameNode(wallet: Wallet, { path, purchase }: SavedPurchase): void {
  if (wallet.id === purchase.nodeUrl) return
  throw usage(
    `${sanitize(path)} belongs to a purchase that another node was asked to pay: ${sanitize(purchase.nodeUrl)}`,
    'Use that node, or another file.',
  )
}

/** Pays the invoice, unless the node already has. Undefined if it was not paid and can no longer be paid. */
async function settle(
  call: Call,
  offer: Offer,
  wallet: Wallet,
  kept: SavedPurchase,
  lock: Lock | undefined,
  mayPay: () => Promise<void>,
): Promise<Paid | undefined> {
  call.spinner.show(`Paying ${sat(offer.amountSat)}`)
  let paid: Paid | 'lapsed'
  try {
    paid = await settleWith(wallet, offer, {
      crypto: crypto(),
      isResumed: kept.isResumed,
      signal: call.signal,
      patienceMs: call.number('timeout') === undefined ? undefined : call.timeoutMs,
      // A resumed run pays the same invoice: if the earlier request still reaches the node, the node pays it only once.
      beforePaying: async () => {
        await mayPay()
        choose(call, [offer], 'This run paid nothing.')
      },
    })
  } catch (error) {
    throw await afterPaying(error instanceof PurchaseError ? explainPurchase(error) : error, call, kept, lock)
  }
  if (paid === 'lapsed') return undefined
  try {
    await kept.complete(offer.header, offer.credentialFor(paid.preimage))
  } catch (error) {
    throw notStored(error, kept)
  }
  return paid
}

/**
 * After these failures, it is certain that this run paid nothing. After all others, it may have paid, or another run that has taken the
 * file may have.
 */
const NOTHING_PAID = new Set(['node_unreachable', 'node_password', 'payment_refused', 'payment_failed', 'too_expensive'])

/** If nothing was paid, the file is not needed. Otherwise the error says how to continue. */
async function afterPaying(error: unknown, call: Call, kept: SavedPurchase, lock: Lock | undefined): Promise<unknown> {
  const isInterrupted = call.signal.aborted
  if (!isInterrupted && !kept.isResumed && error instanceof Failure && NOTHING_PAID.has(error.code)) {
    await removeUnpaid(kept, lock)
    return error
  }
  const cause = error instanceof Failure ? error : new Failure('network', 'payment_unknown', 'The payment may have been made.')
  return new Failure(cause.exit, cause.code, isInterrupted ? `${cause.message} The payment may have been made.` : cause.message, {
    cause: error,
    next: [
      ...cause.next,
      'To ask the node, and pay only if it has not paid yet:',
      again(kept),
      'If that node is gone, you can buy again with another file, but you may then pay twice.',
    ],
    details: { ...cause.details, outcome: 'unknown', paymentHash: kept.purchase.paymentHash, credentialFile: kept.path },
  })
}

/** The node paid, but the file does not have the credential. A run that finds the purchase in its file asks the node for it. */
function notStored(error: unknown, kept: SavedPurchase): Failure {
  const { paymentHash } = kept.purchase
  const file = sanitize(kept.path)
  const message = isSystemError(error)
    ? `The node paid, but ${file} could not be written: ${reasonOf(error)}.`
    : `The node paid. ${error instanceof Failure ? error.message : 'The credential could not be stored.'}`
  return new Failure('other', 'output_failed', message, {
    cause: error,
    next: kept.isInFile
      ? ['When the file can be written, to get what you paid for without paying again:', again(kept)]
      : `Look up the payment ${paymentHash} on the node, and ask the seller.`,
    details: { outcome: 'paid', paymentHash, credentialFile: kept.path },
  })
}
