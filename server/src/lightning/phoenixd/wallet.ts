import { readInvoice } from '../../../../protocol/src/bolt11.ts'
import { freshAgent, type NodeAddress } from '../../platform/node-agent.ts'
import { ask, fieldsOf, isAmount, isHash, isTimeMs, type NoAnswer, noAnswer, objectIn, refused, valueIn } from './client.ts'

/** What owners see and do with a node's money: the part of its API that the gateway does not use. */

/** The preimage is left out on purpose: it proves a payment, and the node returns it before anyone has paid. */
export type WalletPayment = {
  direction: 'in' | 'out'
  paymentHash: string | undefined
  amountSat: number
  feeMsat: number
  description: string | undefined
  isPaid: boolean
  createdAtMs: number
  /** Only for invoices, if the node reports it. */
  expiresAtMs: number | undefined
  completedAtMs: number | undefined
}
export type BalanceAnswer = { answer: 'balance'; balanceSat: number; feeCreditSat: number } | NoAnswer
export type PaymentsAnswer = { answer: 'payments'; payments: WalletPayment[] } | NoAnswer
export type PaymentAnswer = { answer: 'payment'; payment: WalletPayment } | { answer: 'unknown' } | NoAnswer
/** uncertain: the payment may have been sent, may be in flight or may never be sent. The caller must look it up instead of paying again. */
export type SentAnswer =
  | { answer: 'sent'; amountSat: number; feeSat: number }
  | { answer: 'failed'; reason: string }
  | { answer: 'wrong password' }
  | { answer: 'uncertain' }
  | NoAnswer

/** A page of this size stays well below the maximum response size. */
const PAGE = 400
/** Outgoing payments are listed oldest first, and phoenixd cannot list the latest ones. So recent payments are selected by age. */
const AGES_MS = [86_400_000, 30 * 86_400_000, Number.POSITIVE_INFINITY]
const LONGEST_REASON = 300

export async function getBalance(address: NodeAddress, password: string, timeoutMs: number): Promise<BalanceAnswer> {
  const reply = await ask(address, password, { path: '/getbalance' }, timeoutMs)
  if (typeof reply === 'string') return noAnswer(reply)
  if (reply.status !== 200) return refused(reply.status)
  const { balanceSat, feeCreditSat } = objectIn(reply.text)
  return isAmount(balanceSat) && isAmount(feeCreditSat)
    ? { answer: 'balance', balanceSat, feeCreditSat }
    : { answer: 'refused', why: 'the answer is not a balance' }
}

const OFFER = /^lno1[02-9ac-hj-np-z]{20,2000}$/
/** phoenixd puts the bitcoin sign in front, as BIP 353 recommends; wallets also accept the address without it. */
const ADDRESS = /^\u20bf?([a-z0-9._+-]{1,64}@[a-z0-9.-]{1,255})$/i

export async function getOffer(
  address: NodeAddress,
  password: string,
  timeoutMs: number,
): Promise<{ answer: 'offer'; offer: string } | NoAnswer> {
  const reply = await ask(address, password, { path: '/getoffer' }, timeoutMs)
  if (typeof reply === 'string') return noAnswer(reply)
  if (reply.status !== 200) return refused(reply.status)
  const offer = reply.text.trim()
  return OFFER.test(offer) ? { answer: 'offer', offer } : { answer: 'refused', why: 'the answer is not an offer' }
}

/** While the node has no channel, it responds with status 200 and an English sentence instead of an address. */
export async function getLightningAddress(
  address: NodeAddress,
  password: string,
  timeoutMs: number,
): Promise<{ answer: 'address'; address: string } | { answer: 'no channel' } | NoAnswer> {
  const reply = await ask(address, password, { path: '/getlnaddress' }, timeoutMs)
  if (typeof reply === 'string') return noAnswer(reply)
  if (reply.status !== 200) return refused(reply.status)
  const text = reply.text.trim()
  if (text === 'must have one channel') return { answer: 'no channel' }
  const [, found] = ADDRESS.exec(text) ?? []
  return found ? { answer: 'address', address: found } : { answer: 'refused', why: 'the answer is not an address' }
}

/** The newest invoices by creation time, including unpaid ones. */
export async function listIncoming(
  address: NodeAddress,
  password: string,
  limit: number,
  timeoutMs: number,
): Promise<PaymentsAnswer> {
  return listed(address, password, `/payments/incoming?all=true&limit=${limit}`, timeoutMs, incomingIn)
}

/** The newest payments, whatever their outcome. */
export async function listOutgoing(
  address: NodeAddress,
  password: string,
  limit: number,
  nowMs: number,
  timeoutMs: number,
): Promise<PaymentsAnswer> {
  const deadline = performance.now() + timeoutMs
  let payments: WalletPayment[] = []
  for (const ageMs of AGES_MS) {
    payments = []
    for (let offset = 0; ; offset += PAGE) {
      const from = Math.max(0, Math.floor(nowMs - ageMs))
      const path = `/payments/outgoing?all=true&from=${from}&limit=${PAGE}&offset=${offset}`
      const page = await listed(address, password, path, Math.max(1, deadline - performance.now()), outgoingIn)
      if (page.answer !== 'payments') return page
      payments = [...payments, ...page.payments].sort(newestFirst).slice(0, limit)
      if (page.payments.length < PAGE) break
    }
    if (payments.length >= limit) break
  }
  return { answer: 'payments', payments }
}

export async function findIncomingPayment(
  address: NodeAddress,
  password: string,
  paymentHash: string,
  timeoutMs: number,
): Promise<PaymentAnswer> {
  return found(address, password, `/payments/incoming/${paymentHash}`, paymentHash, timeoutMs, incomingIn)
}

/** Of several attempts, prefers one that succeeded, then one in flight, then one that failed. */
export async function findOutgoingPayment(
  address: NodeAddress,
  password: string,
  paymentHash: string,
  timeoutMs: number,
): Promise<PaymentAnswer> {
  return found(address, password, `/payments/outgoingbyhash/${paymentHash}`, paymentHash, timeoutMs, outgoingIn)
}

/** Sent exactly once, on a new connection: `ask` repeats a request if a reused connection was just being closed. */
export async function payInvoice(
  address: NodeAddress,
  password: string,
  params: { invoice: string; amountSat: number | undefined },
  timeoutMs: number,
): Promise<SentAnswer> {
  const { invoice, amountSat } = params
  const form = { invoice, ...(amountSat === undefined ? {} : { amountSat: String(amountSat) }) }
  const reply = await ask(address, password, { path: '/payinvoice', form }, timeoutMs, freshAgent)
  if (reply === 'connection refused') return noAnswer(reply)
  if (typeof reply === 'string') return { answer: 'uncertain' }
  if (reply.status === 401) return { answer: 'wrong password' }
  // A 4xx means that the node rejected the request before the payment was sent. Any other error may have come later.
  if (reply.status >= 400 && reply.status < 500) return refused(reply.status)
  if (reply.status !== 200) return { answer: 'uncertain' }
  const { recipientAmountSat, routingFeeSat, paymentPreimage, reason } = objectIn(reply.text)
  // Only the preimage distinguishes success from failure: both have status 200.
  if (isHash(paymentPreimage) && isAmount(recipientAmountSat) && isAmount(routingFeeSat))
    return { answer: 'sent', amountSat: recipientAmountSat, feeSat: routingFeeSat }
  if (paymentPreimage === undefined && typeof reason === 'string')
    return { answer: 'failed', reason: reason.slice(0, LONGEST_REASON) }
  return { answer: 'uncertain' }
}

type Read = (value: unknown) => WalletPayment | undefined

async function listed(
  address: NodeAddress,
  password: string,
  path: string,
  timeoutMs: number,
  read: Read,
): Promise<PaymentsAnswer> {
  const reply = await ask(address, password, { path }, timeoutMs)
  if (typeof reply === 'string') return noAnswer(reply)
  if (reply.status !== 200) return refused(reply.status)
  const list = valueIn(reply.text)
  if (!Array.isArray(list)) return { answer: 'refused', why: 'the answer is not a list' }
  const payments = list.map(read)
  return payments.every((payment) => payment !== undefined)
    ? { answer: 'payments', payments }
    : { answer: 'refused', why: 'the list contains an entry that is not a payment' }
}

async function found(
  address: NodeAddress,
  password: string,
  path: string,
  paymentHash: string,
  timeoutMs: number,
  read: Read,
): Promise<PaymentAnswer> {
  const reply = await ask(address, password, { path }, timeoutMs)
  if (typeof reply === 'string') return noAnswer(reply)
  if (reply.status === 404) return { answer: 'unknown' }
  if (reply.status !== 200) return refused(reply.status)
  const payment = read(valueIn(reply.text))
  // An answer about a different payment must not decide this one's outcome.
  return payment?.paymentHash === paymentHash
    ? { answer: 'payment', payment }
    : { answer: 'refused', why: 'the response is not a valid payment with the requested hash' }
}

function incomingIn(value: unknown): WalletPayment | undefined {
  const { paymentHash, description, isPaid, requestedSat, receivedSat, fees, createdAt, expiresAt, completedAt } = fieldsOf(value)
  if (!isHash(paymentHash) || typeof isPaid !== 'boolean' || !isTimeMs(createdAt)) return undefined
  const amountSat = isPaid ? receivedSat : requestedSat
  return {
    direction: 'in',
    paymentHash,
    amountSat: isAmount(amountSat) ? amountSat : 0,
    feeMsat: isAmount(fees) ? fees : 0,
    description: typeof description === 'string' ? description : undefined,
    isPaid,
    createdAtMs: createdAt,
    expiresAtMs: isTimeMs(expiresAt) ? expiresAt : undefined,
    completedAtMs: isTimeMs(completedAt) ? completedAt : undefined,
  }
}

/** On-chain payments have no description, and an unexplained fee looks like theft. */
const ON_CHAIN: Record<string, string> = {
  auto_liquidity: 'Inbound liquidity, bought automatically',
  manual_liquidity: 'Inbound liquidity',
  splice_out: 'On-chain payment',
  splice_cpfp: 'Higher fee for an on-chain transaction',
  channel_close: 'Channel closed',
}

function outgoingIn(value: unknown): WalletPayment | undefined {
  const { subType, paymentHash, isPaid, sent, fees, invoice, createdAt, completedAt } = fieldsOf(value)
  if (typeof isPaid !== 'boolean' || !isAmount(sent) || !isTimeMs(createdAt)) return undefined
  const feeMsat = isAmount(fees) ? fees : 0
  const described = typeof invoice === 'string' ? readInvoice(invoice)?.description : ON_CHAIN[String(subType)]
  return {
    direction: 'out',
    paymentHash: isHash(paymentHash) ? paymentHash : undefined,
    // Once the payment is paid, phoenixd's amount includes the fee, rounded down to whole satoshis. Before that, it excludes the fee.
    amountSat: isPaid ? Math.max(0, Math.ceil((sent * 1000 - feeMsat) / 1000)) : sent,
    feeMsat,
    description: described,
    isPaid,
    createdAtMs: createdAt,
    expiresAtMs: undefined,
    completedAtMs: isTimeMs(completedAt) ? completedAt : undefined,
  }
}

export const newestFirst = (a: WalletPayment, b: WalletPayment): number => b.createdAtMs - a.createdAtMs
