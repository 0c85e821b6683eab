import { createHash } from 'node:crypto'
import { type Agent, type ClientRequest, request } from 'node:http'
import { freshAgent, keepingAgent, type NodeAddress } from '../../platform/node-agent.ts'

export type NodeInfo = {
  nodeId: string
  version: string
  blockHeight: number | undefined
  channels: Channel[]
}

/** balanceSat: undefined where the node tells none. */
export type Channel = { state: string; balanceSat: number | undefined }

/** refused: nobody listens. silent: somebody does, and does not answer. */
export type InfoAnswer = { answer: 'info'; info: NodeInfo } | { answer: 'refused' | 'silent' | 'wrong password' | 'nonsense' }

export type InvoiceWish = {
  /** Undefined: the payer chooses. */
  amountSat: number | undefined
  description: string
  /** The node's own, a day, unless given. */
  expirySeconds?: number
  externalId?: string
  webhookUrl?: string
}

/** refused: it answered, and not with what it was asked for. Why goes to the log: a status and our own words, never the node's. */
export type NoAnswer = { answer: 'unreachable' } | { answer: 'refused'; why: string }
export type InvoiceAnswer = { answer: 'invoice'; serialized: string; paymentHash: string } | NoAnswer
/** unknown: it has no such payment. There is no preimage in here: it proves a payment, and the node tells it before anyone has paid. */
export type IncomingAnswer =
  | { answer: 'incoming'; isPaid: boolean; completedAtMs: number | undefined }
  | { answer: 'unknown' }
  | NoAnswer

const MAX_BYTES = 1024 * 1024
/** phoenixd's own limit, in its own measure. */
const MAX_DESCRIPTION_UNITS = 128
const HASH = /^[0-9a-f]{64}$/

const kept = keepingAgent(32)

export async function getInfo(address: NodeAddress, password: string, timeoutMs: number): Promise<InfoAnswer> {
  // Behind thirty-two slow payments a node that is well would look silent, and be restarted in the midst of them.
  const reply = await ask(address, password, { path: '/getinfo' }, timeoutMs, freshAgent)
  if (reply === 'nobody listens') return { answer: 'refused' }
  if (typeof reply === 'string') return { answer: 'silent' }
  if (reply.status === 401) return { answer: 'wrong password' }
  const info = parseInfo(reply.text)
  return info ? { answer: 'info', info } : { answer: 'nonsense' }
}

export async function createInvoice(
  address: NodeAddress,
  password: string,
  wish: InvoiceWish,
  timeoutMs: number,
): Promise<InvoiceAnswer> {
  const { description, amountSat, expirySeconds, externalId, webhookUrl } = wish
  const form = {
    ...(amountSat === undefined ? {} : { amountSat: String(amountSat) }),
    ...(expirySeconds === undefined ? {} : { expirySeconds: String(expirySeconds) }),
    ...(externalId === undefined ? {} : { externalId }),
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
    ...(description.length <= MAX_DESCRIPTION_UNITS ? { description } : { descriptionHash: sha256(description) }),
  }
  const reply = await ask(address, password, { path: '/createinvoice', form }, timeoutMs)
  if (typeof reply === 'string') return noAnswer(reply)
  if (reply.status !== 200) return refused(reply.status)
  const { serialized, paymentHash } = objectIn(reply.text)
  return typeof serialized === 'string' && isHash(paymentHash)
    ? { answer: 'invoice', serialized, paymentHash }
    : { answer: 'refused', why: 'the answer is not an invoice' }
}

export async function findIncoming(
  address: NodeAddress,
  password: string,
  paymentHash: string,
  timeoutMs: number,
): Promise<IncomingAnswer> {
  const path = `/payments/incoming/${encodeURIComponent(paymentHash)}`
  const reply = await ask(address, password, { path }, timeoutMs)
  if (typeof reply === 'string') return noAnswer(reply)
  if (reply.status === 404) return { answer: 'unknown' }
  if (reply.status !== 200) return refused(reply.status)
  const found = objectIn(reply.text)
  // Of another payment it would say that this one is paid.
  if (found.paymentHash !== paymentHash || typeof found.isPaid !== 'boolean')
    return { answer: 'refused', why: 'the answer is not this payment' }
  if (!found.isPaid) return { answer: 'incoming', isPaid: false, completedAtMs: undefined }
  // The time goes into a receipt, and a receipt is for ever.
  if (!isTimeMs(found.completedAt)) return { answer: 'refused', why: 'the payment is paid at no time' }
  return { answer: 'incoming', isPaid: true, completedAtMs: found.completedAt }
}

type Call = { path: string; form?: Record<string, string> }
type Reply = { status: number; text: string } | 'nobody listens' | 'no answer' | 'not HTTP' | 'too large'

/** The time is for everything: a connection, the head of the answer and all of its body. */
export function ask(address: NodeAddress, password: string, call: Call, timeoutMs: number, agent: Agent = kept): Promise<Reply> {
  const authorization = `Basic ${Buffer.from(`:${password}`).toString('base64')}`
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const headers = { authorization, ...(call.form ? type : {}) }
  const body = call.form && new URLSearchParams(call.form).toString()
  return new Promise((resolve) => {
    let outgoing: ClientRequest
    let isOver = false
    const finish = (reply: Reply): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      // Otherwise whatever still comes would be read, and the connection be kept for somebody else's request.
      if (typeof reply === 'string') outgoing.destroy()
      resolve(reply)
    }
    // A clock of our own: a request that waits for a connection is told of its end only when it has got one.
    // After a turn in which sockets are read: in a process that was busy an answer that came in time may lie there unread.
    const timer = setTimeout(() => setImmediate(finish, 'no answer'), timeoutMs)
    const send = (through: Agent): void => {
      let bytesBefore = 0
      outgoing = request({ ...address, agent: through, method: body === undefined ? 'GET' : 'POST', path: call.path, headers })
      outgoing.on('socket', (socket) => {
        bytesBefore = socket.bytesRead
      })
      outgoing.on('response', (response) => {
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          size += chunk.length
          if (size > MAX_BYTES) finish('too large')
        })
        response.on('error', () => finish('no answer'))
        response.on('end', () => finish({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }))
      })
      // Nobody asked for one, and without a listener node:http closes without a word.
      outgoing.on('upgrade', () => finish('not HTTP'))
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        if (!isOver && isClosedInPassing(outgoing, bytesBefore, error)) send(freshAgent)
        else finish(meaningOf(error))
      })
      outgoing.end(body)
    }
    send(agent)
  })
}

/**
 * A kept connection that the daemon closed just when we wrote to it. To ask again is safe even where the first request did arrive: a
 * look-up changes nothing, and an invoice that nobody was told of is paid by nobody.
 */
function isClosedInPassing(outgoing: ClientRequest, bytesBefore: number, error: NodeJS.ErrnoException): boolean {
  const isClosed = error.code === 'ECONNRESET' || error.code === 'EPIPE'
  return outgoing.reusedSocket && isClosed && outgoing.socket?.bytesRead === bytesBefore
}

function meaningOf({ code = '' }: NodeJS.ErrnoException): Reply {
  if (code === 'ECONNREFUSED') return 'nobody listens'
  return code.startsWith('HPE_') ? 'not HTTP' : 'no answer'
}

export function noAnswer(reply: string): NoAnswer {
  return reply === 'not HTTP' || reply === 'too large'
    ? { answer: 'refused', why: `the answer is ${reply}` }
    : { answer: 'unreachable' }
}

export const refused = (status: number): NoAnswer => ({ answer: 'refused', why: `the node answered with status ${status}` })

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')
export const isHash = (value: unknown): value is string => typeof value === 'string' && HASH.test(value)

/** Beyond the year 9999 no date can be written any more, and a settlement that has one could never get its receipt. */
export function isTimeMs(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) < 253_402_300_800_000
}

/** Undefined: not JSON. */
export function valueIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What is not an object has no fields. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

export const objectIn = (text: string): Record<string, unknown> => fieldsOf(valueIn(text))

export const isAmount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

function parseInfo(text: string): NodeInfo | undefined {
  const { nodeId, version, blockHeight, channels } = objectIn(text)
  if (typeof nodeId !== 'string' || typeof version !== 'string' || !Array.isArray(channels)) return undefined
  return {
    nodeId,
    version,
    blockHeight: isAmount(blockHeight) ? blockHeight : undefined,
    channels: channels.map(channelIn),
  }
}

function channelIn(value: unknown): Channel {
  const { state, balanceSat } = fieldsOf(value)
  return { state: typeof state === 'string' ? state : '', balanceSat: isAmount(balanceSat) ? balanceSat : undefined }
}

/** States whose balance is all that we have in the channel. One that is not listed here counts as funds, whatever balance it tells. */
const KNOWN_STATES = new Set([
  'Normal',
  'WaitForFundingConfirmed',
  'WaitForChannelReady',
  'ShuttingDown',
  'Negotiating',
  'Closing',
  'Closed',
  'Aborted',
])

/** Offline and syncing channels hide their balance until the peer is back. */
const isHidden = ({ state, balanceSat }: Channel): boolean => balanceSat === undefined && /^(Offline|Syncing)(\(|$)/.test(state)

/** A refused opening leaves such an entry until the daemon restarts. It never held anything. */
export const isAborted = ({ state, balanceSat }: Channel): boolean => state === 'Aborted' && balanceSat === undefined

function mayHoldFunds(channel: Channel): boolean {
  if (isHidden(channel) || isAborted(channel)) return false
  return channel.balanceSat !== 0 || !KNOWN_STATES.has(channel.state)
}

/**
 * Undefined: this answer tells nothing. One channel with money is enough to know; that there is none is only known when no channel
 * hides its balance, and not before the block height: until then a daemon has not restored its channels and lists none.
 */
export function hasFunds({ blockHeight, channels }: NodeInfo): boolean | undefined {
  if (channels.some(mayHoldFunds)) return true
  return blockHeight === undefined || channels.some(isHidden) ? undefined : false
}

/** Undefined while any channel does not tell its balance: a sum without it would look like lost money. */
export function balanceOf({ blockHeight, channels }: NodeInfo): number | undefined {
  const balances = channels.filter((channel) => !isAborted(channel)).map(({ balanceSat }) => balanceSat)
  if (blockHeight === undefined || !balances.every((sat) => sat !== undefined)) return undefined
  return balances.reduce((sum, sat) => sum + sat, 0)
}
