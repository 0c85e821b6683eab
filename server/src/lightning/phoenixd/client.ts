import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { type Agent, type ClientRequest, request } from 'node:http'
import { freshAgent, keepingAgent, type NodeAddress } from '../../platform/node-agent.ts'
import { nodeCallProbe, statusClass } from '../../platform/probes.ts'

export type NodeInfo = {
  nodeId: string
  version: string
  blockHeight: number | undefined
  channels: Channel[]
}

/** balanceSat: undefined if the node does not report one. */
export type Channel = { state: string; balanceSat: number | undefined; inboundSat?: number }

/**
 * refused: nothing listens on the port. silent: something listens but does not respond. unreachable: there was no connection at all, because
 * of the network or because too many connections wait to be accepted.
 */
export type InfoAnswer =
  | { answer: 'info'; info: NodeInfo }
  | { answer: 'refused' | 'silent' | 'unreachable' | 'wrong password' | 'nonsense' }

export type InvoiceParams = {
  /** Undefined: the payer chooses. */
  amountSat: number | undefined
  description: string
  /** 64 hex digits. The invoice contains this instead of the description. */
  descriptionHash?: string
  /** Defaults to the node's own default, which is one day. */
  expirySeconds?: number
  externalId?: string
  webhookUrl?: string
}

/**
 * refused: the node responded, but not with what was requested. `why` goes to the log: a status and our own words, never the node's text.
 */
export type NoAnswer = { answer: 'unreachable' } | { answer: 'refused'; why: string }
export type InvoiceAnswer = { answer: 'invoice'; serialized: string; paymentHash: string } | NoAnswer
/**
 * unknown: the node has no such payment. The preimage is left out on purpose: it proves a payment, and the node returns it before anyone
 * has paid.
 */
export type IncomingAnswer =
  | { answer: 'incoming'; isPaid: boolean; completedAtMs: number | undefined }
  | { answer: 'unknown' }
  | NoAnswer

const MAX_BYTES = 1024 * 1024
/** phoenixd's limit, in UTF-16 code units. */
const MAX_DESCRIPTION_UNITS = 128
const HASH = /^[0-9a-f]{64}$/

const kept = keepingAgent(32)

export async function getInfo(address: NodeAddress, password: string, timeoutMs: number): Promise<InfoAnswer> {
  // With the shared agent, this request would queue behind 32 slow ones, and a busy but healthy node would look silent and be
  // restarted.
  const reply = await ask(address, password, { path: '/getinfo' }, timeoutMs, freshAgent)
  if (reply === 'connection refused') return { answer: 'refused' }
  if (reply === 'no connection') return { answer: 'unreachable' }
  if (typeof reply === 'string') return { answer: 'silent' }
  if (reply.status === 401) return { answer: 'wrong password' }
  const info = parseInfo(reply.text)
  return info ? { answer: 'info', info } : { answer: 'nonsense' }
}

export async function createInvoice(
  address: NodeAddress,
  password: string,
  params: InvoiceParams,
  timeoutMs: number,
): Promise<InvoiceAnswer> {
  const { description, amountSat, expirySeconds, externalId, webhookUrl } = params
  const descriptionHash = params.descriptionHash ?? (description.length > MAX_DESCRIPTION_UNITS ? sha256(description) : undefined)
  const form = {
    ...(amountSat === undefined ? {} : { amountSat: String(amountSat) }),
    ...(expirySeconds === undefined ? {} : { expirySeconds: String(expirySeconds) }),
    ...(externalId === undefined ? {} : { externalId }),
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
    ...(descriptionHash === undefined ? { description } : { descriptionHash }),
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
  // An answer about a different payment must not mark this one as paid.
  if (found.paymentHash !== paymentHash || typeof found.isPaid !== 'boolean')
    return { answer: 'refused', why: 'the response has another payment hash or no valid isPaid' }
  if (!found.isPaid) return { answer: 'incoming', isPaid: false, completedAtMs: undefined }
  // The time goes into a receipt, and a receipt never changes, so the time must be valid.
  if (!isTimeMs(found.completedAt)) return { answer: 'refused', why: 'the payment is paid but has no valid time' }
  return { answer: 'incoming', isPaid: true, completedAtMs: found.completedAt }
}

type Call = { path: string; form?: Record<string, string> }
type Reply = { status: number; text: string } | 'connection refused' | 'no connection' | 'no answer' | 'not HTTP' | 'too large'

/** The timeout covers everything: the connection, the headers and the whole body. */
export function ask(address: NodeAddress, password: string, call: Call, timeoutMs: number, agent: Agent = kept): Promise<Reply> {
  const authorization = `Basic ${Buffer.from(`:${password}`).toString('base64')}`
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const headers = { authorization, ...(call.form ? type : {}) }
  const body = call.form && new URLSearchParams(call.form).toString()
  const startedAtMs = performance.now()
  // This request may wait for the connection of another request, and then its response is read in the async scope of that
  // request.
  const inScope = nodeCallProbe.isWatched ? AsyncLocalStorage.snapshot() : undefined
  return new Promise((resolve) => {
    let outgoing: ClientRequest
    let isOver = false
    const finish = (reply: Reply): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      // Otherwise the rest of the response would still be read, and the connection reused for another request.
      if (typeof reply === 'string') outgoing.destroy()
      inScope?.(measure, call, reply, startedAtMs)
      resolve(reply)
    }
    // Our own timer: a request that waits for a connection gets its timeout event only once it has one. setImmediate lets pending socket
    // reads run first: in a busy process, a response that arrived in time may still be unread.
    const timer = setTimeout(() => setImmediate(() => finish(isConnected() ? 'no answer' : 'no connection')), timeoutMs)
    const isConnected = (): boolean => outgoing.socket?.connecting === false
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
      // We never ask for an upgrade. Without a listener, node:http would close the connection silently.
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

function measure({ path }: Call, reply: Reply, startedAtMs: number): void {
  // Only the first two segments: a third one is a payment hash, which must not become a label.
  const [, first = '', second] = path.split('?')[0]?.split('/') ?? []
  const result = typeof reply === 'string' ? reply.toLowerCase().replaceAll(' ', '_') : statusClass(reply.status)
  const seconds = (performance.now() - startedAtMs) / 1000
  nodeCallProbe.report({ call: second === undefined ? first : `${first}/${second}`, result, seconds })
}

/**
 * The daemon closed an idle connection just as we wrote to it. A retry is safe even if the first request arrived: a look-up changes
 * nothing, and nobody pays an invoice that was never returned.
 */
function isClosedInPassing(outgoing: ClientRequest, bytesBefore: number, error: NodeJS.ErrnoException): boolean {
  const isClosed = error.code === 'ECONNRESET' || error.code === 'EPIPE'
  return outgoing.reusedSocket && isClosed && outgoing.socket?.bytesRead === bytesBefore
}

const NO_ROUTE = new Set(['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ETIMEDOUT'])

function meaningOf({ code = '' }: NodeJS.ErrnoException): Reply {
  if (code === 'ECONNREFUSED') return 'connection refused'
  if (NO_ROUTE.has(code)) return 'no connection'
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

/** Dates after the year 9999 cannot be formatted, and a settlement with one could never get its receipt. */
export function isTimeMs(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) < 253_402_300_800_000
}

/** Undefined if the text is not JSON. */
export function valueIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Empty if the value is not an object. */
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
  const { state, balanceSat, inboundLiquiditySat } = fieldsOf(value)
  return {
    state: typeof state === 'string' ? state : '',
    balanceSat: isAmount(balanceSat) ? balanceSat : undefined,
    ...(isAmount(inboundLiquiditySat) ? { inboundSat: inboundLiquiditySat } : {}),
  }
}

/** States in which the reported balance is all that the node has in the channel. Any other state counts as funds, whatever its balance. */
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

/** A channel whose opening was refused leaves such an entry until the daemon restarts. It never held funds. */
export const isAborted = ({ state, balanceSat }: Channel): boolean => state === 'Aborted' && balanceSat === undefined

function mayHoldFunds(channel: Channel): boolean {
  if (isHidden(channel) || isAborted(channel)) return false
  return channel.balanceSat !== 0 || !KNOWN_STATES.has(channel.state)
}

/**
 * Undefined: unknown. One channel with money is enough for true. False requires that no channel hides its balance and that the block height
 * is known: until then, a daemon has not restored its channels and lists none.
 */
export function hasFunds({ blockHeight, channels }: NodeInfo): boolean | undefined {
  if (channels.some(mayHoldFunds)) return true
  return blockHeight === undefined || channels.some(isHidden) ? undefined : false
}

/** Undefined while any channel hides its balance: a partial sum would look like lost money. */
export function balanceOf({ blockHeight, channels }: NodeInfo): number | undefined {
  const balances = channels.filter((channel) => !isAborted(channel)).map(({ balanceSat }) => balanceSat)
  if (blockHeight === undefined || !balances.every((sat) => sat !== undefined)) return undefined
  return balances.reduce((sum, sat) => sum + sat, 0)
}

/**
 * How much the node can receive without buying liquidity; undefined while any channel is offline or does not report its inbound
 * liquidity.
 */
export function inboundOf({ channels }: NodeInfo): number | undefined {
  if (channels.some(isHidden)) return undefined
  const inbound = channels.filter(({ state }) => state === 'Normal').map(({ inboundSat }) => inboundSat)
  return inbound.every((sat) => sat !== undefined) ? inbound.reduce((sum, sat) => sum + sat, 0) : undefined
}
