import { isForSharedCaches, privately } from '../answers.ts'
import type { Delivery } from '../gate/delivery.ts'

/** The parts of node:http's response we use, so that users do not have to install its types. */
export type NodeResponse = {
  statusCode: number
  headersSent: boolean
  writableFinished: boolean
  destroyed?: boolean
  errored?: unknown
  /** Null while another request's response is being written to the socket. */
  socket?: NodeSocket | null | undefined
  req?: { socket?: Connection | null | undefined; complete?: boolean | undefined } | undefined
  /** HTTP/2 only. */
  stream?: NodeStream | undefined
  getHeader(name: string): unknown
  getHeaderNames(): string[]
  setHeader(name: string, value: string): unknown
  removeHeader(name: string): unknown
  writeHead(status: number, headers?: Record<string, string | string[]>): unknown
  end(body?: string): unknown
  destroy?(): unknown
  emit?(event: 'close'): unknown
  once(event: 'close' | 'finish' | 'socket', listener: () => void): unknown
}

type NodeStream = {
  writableFinished: boolean
  destroyed: boolean
  errored?: unknown
  /** The request has no body. */
  endAfterHeaders?: boolean
  session?: { destroyed: boolean } | undefined
}

type NodeSocket = {
  bytesWritten: number
  readableEnded: boolean
  errored?: unknown
  once(event: 'timeout', listener: () => void): unknown
  removeListener(event: 'timeout', listener: () => void): unknown
}

type Connection = { destroyed: boolean; server?: NodeServer | undefined; once(event: 'close', listener: () => void): unknown }

type Takeover = 'connect' | 'upgrade' | 'clientError'
type TakeoverListener = (cause: unknown, socket: { destroy(): unknown }) => void
type NodeServer = {
  listenerCount(event: Takeover): number
  prependListener(event: Takeover, listener: TakeoverListener): unknown
  removeListener(event: Takeover, listener: TakeoverListener): unknown
}

const queued = new WeakMap<Connection, Set<NodeResponse>>()

/** Emits `close` if the connection is closed while the response is queued behind another one. Node itself does not. */
export function closeWithConnection(response: NodeResponse): void {
  const connection = response.req?.socket
  if (response.stream || response.socket || !connection || response.writableFinished) return
  if (connection.destroyed) return closeQueued(response)
  const responses = queued.get(connection) ?? new Set()
  if (!queued.has(connection)) {
    queued.set(connection, responses)
    connection.once('close', () => {
      queued.delete(connection)
      for (const one of responses) closeQueued(one)
    })
  }
  responses.add(response)
  response.once('socket', () => responses.delete(response))
}

function closeQueued(response: NodeResponse): void {
  response.destroy?.()
  response.emit?.('close')
}

const TAKEOVERS: readonly Takeover[] = ['connect', 'upgrade', 'clientError']
const watched = new WeakMap<NodeServer, Set<Takeover>>()
const takenOver = new WeakSet<object>()

/**
 * With CONNECT, an upgrade or a malformed request, a customer can make the server close the connection in the middle of a paid
 * response. This looks as if the shop had aborted the response, and the customer could then use the payment again.
 */
function watchTakeovers(server: NodeServer): void {
  const events = watched.get(server) ?? new Set()
  watched.set(server, events)
  for (const event of TAKEOVERS) {
    // Without a listener, Node already handles `upgrade` and `clientError` correctly.
    if (events.has(event) || (event !== 'connect' && server.listenerCount(event) === 0)) continue
    const note: TakeoverListener = (_cause, socket) => {
      takenOver.add(socket)
      if (server.listenerCount(event) > 1) return
      // The shop has no listener, or has removed it.
      socket.destroy()
      if (event === 'connect') return
      server.removeListener(event, note)
      events.delete(event)
    }
    events.add(event)
    server.prependListener(event, note)
  }
}

/** Created once: a new error with a stack for every response would take 2 % of the CPU time of an unpaid visit. */
const OVER = new DOMException('The response is over.', 'AbortError')

/**
 * Runs the work and returns its result. If the connection is closed first, aborts the work and returns undefined. The signal is also
 * aborted when the response is over.
 */
export async function whileConnected<T>(
  response: NodeResponse,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController()
  const { signal } = controller
  const leave = (): void => controller.abort(OVER)
  closeWithConnection(response)
  // The customer may already have disconnected during earlier middleware, and `close` is emitted only once.
  if (response.destroyed || response.stream?.destroyed) return undefined
  response.once('close', leave)
  try {
    return await work(signal)
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  }
}

/** For a response that is free for this caller, but not for everyone. */
export const keepPrivate = (response: NodeResponse): void => finishHead(response, undefined)

/** Adds the headers of a paid response, and determines whether it was delivered. */
export function follow(response: NodeResponse, delivery: Delivery): void {
  finishHead(response, delivery)
  if (delivery.isWatched) decideDelivery(response, delivery)
}

/**
 * The first of these events decides:
 * - The response is complete: delivered.
 * - The handler responds with 4xx or 5xx: not delivered.
 * - The customer disconnects before any byte of the response was written to the socket: not delivered, once the handler has
 *   finished, unless `releaseOnDisconnect` is false.
 * - The customer disconnects later, or stops reading until a timeout: delivered. Otherwise one payment could buy many almost
 *   complete responses.
 * - The shop aborts the response: not delivered.
 */
function decideDelivery(response: NodeResponse, delivery: Delivery): void {
  const { end, writeHead, req, stream } = response
  // Read now, because a destroyed stream has no session.
  const session = stream?.session
  // Checked now, not at the end of the hold: if the upload is complete just before the end, the handler has no time left.
  const wasUploading = req?.complete === false && stream?.endAfterHeaders !== true
  let [socket, bytesBefore]: [NodeSocket | null | undefined, number] = [undefined, 0]
  let [hasEnded, hasLeft, hasTimedOut, wasKept] = [false, false, false, false]

  const byStatus = (): void => {
    if (response.statusCode >= 400) delivery.release(`the handler returned ${response.statusCode}`)
    else delivery.deliver()
  }
  const afterLeaving = (): void => {
    if (delivery.releaseOnDisconnect) delivery.release('the customer left before the response')
    else byStatus()
  }
  // In HTTP/2, Node itself finishes a response that the customer has reset.
  const isFinished = (): boolean => (response.stream ? hasEnded && response.stream.writableFinished : response.writableFinished)
  const hasSent = (): boolean => response.headersSent && (!!response.stream || (socket?.bytesWritten ?? 0) > bytesBefore)
  const hasShopBroken = (): boolean => {
    // Neither the reset code nor a connection's error shows who aborted the response: the customer can cause both.
    if (response.stream) return !session?.destroyed && isOwnError(response.stream.errored)
    if (response.errored) return true
    // The response was still queued behind another one.
    if (!socket) return false
    return !(hasTimedOut || takenOver.has(socket) || socket.readableEnded || socket.errored)
  }
  const timeOut = (): void => {
    hasTimedOut = true
  }
  // `100 Continue` and Node's own response to a malformed request are not part of what was paid for.
  const countFromHere = (): void => {
    bytesBefore = response.socket?.bytesWritten ?? 0
  }
  const useSocket = (): void => {
    socket = response.socket
    countFromHere()
    socket?.once('timeout', timeOut)
  }
  const close = (): void => {
    socket?.removeListener('timeout', timeOut)
    if (delivery.isDecided) return
    if (isFinished()) byStatus()
    else if (hasShopBroken()) delivery.release('the response was cut off')
    else if (hasSent()) byStatus()
    else if (hasEnded) afterLeaving()
    else hasLeft = true
    // After `isKeptWaiting` was true, the claim no longer lapses by itself, and the handler may never end.
    if (hasLeft && wasKept) afterLeaving()
  }
  response.once('close', close)
  response.once('finish', () => {
    if (!hasLeft && isFinished()) byStatus()
  })
  // With pipelining, a response gets the socket only after the previous response has finished.
  if (response.socket) useSocket()
  else response.once('socket', useSocket)
  closeWithConnection(response)
  const server = req?.socket?.server
  if (server && !stream) watchTakeovers(server)
  delivery.hasBegun = hasSent
  // True if the response waits behind an earlier one that the customer has not read, or if they may still be sending the request.
  delivery.isKeptWaiting = () => {
    wasKept = !hasLeft && (response.headersSent || wasUploading)
    return wasKept
  }
  response.writeHead = function (this: NodeResponse, ...args: unknown[]) {
    // A second call throws, and must not hide that the first head was sent.
    if (!response.headersSent) countFromHere()
    return Reflect.apply(writeHead, this, args)
  } as NodeResponse['writeHead']
  if (response.destroyed) close()
  response.end = function (this: NodeResponse, ...args: unknown[]) {
    const result = Reflect.apply(end, this, args)
    hasEnded = true
    if (hasLeft) afterLeaving()
    else if (response.statusCode >= 400) byStatus()
    return result
  } as NodeResponse['end']
}

/** If the customer resets the stream, Node sets an error with this code. Any other error comes from the shop. */
const isOwnError = (error: unknown): boolean =>
  error instanceof Error && (error as { code?: unknown }).code !== 'ERR_HTTP2_STREAM_ERROR'

/**
 * The handler's status and Cache-Control are only known when the response head is written. Only then is it clear whether to add a receipt
 * and what to do about caching.
 */
function finishHead(response: NodeResponse, delivery: Delivery | undefined): void {
  const { writeHead } = response
  response.writeHead = function (this: NodeResponse, ...args: unknown[]) {
    const at = args.findIndex((one) => typeof one === 'object' && one !== null)
    const own = at < 0 ? undefined : pairsOf(args[at]).findLast(([name]) => name === 'cache-control')?.[1]
    const cacheControl = own ?? response.getHeader('cache-control')
    response.setHeader('cache-control', privately(cacheControl === undefined ? undefined : String(cacheControl)))
    const receipt = delivery?.receiptFor(args[0] as number)
    for (const name of response.getHeaderNames())
      if (isForSharedCaches(name) || (delivery && isReceipt(name))) response.removeHeader(name)
    if (receipt) response.setHeader(receipt.header, receipt.value)
    if (at >= 0) args[at] = withoutCaching(args[at])
    return Reflect.apply(writeHead, this, args)
  } as NodeResponse['writeHead']
}

/** A receipt of another paywall, or one that the handler copied from elsewhere. */
const isReceipt = (name: string): boolean => name === 'payment-receipt' || name === 'payment-response'

/** Headers are an object, or a flat list of alternating names and values. */
function pairsOf(headers: unknown): [name: string, value: unknown][] {
  const pairs: [string, unknown][] = Array.isArray(headers)
    ? headers.flatMap((name, at): [string, unknown][] => (at % 2 === 0 ? [[name, headers[at + 1]]] : []))
    : Object.entries(headers ?? {})
  return pairs.map(([name, value]) => [name.toLowerCase(), value])
}

function withoutCaching(headers: unknown): unknown {
  const isIt = (name: unknown): boolean =>
    typeof name === 'string' && (name.toLowerCase() === 'cache-control' || isForSharedCaches(name))
  if (Array.isArray(headers)) return headers.filter((_, at) => !isIt(headers[at - (at % 2)]))
  return Object.fromEntries(Object.entries(headers ?? {}).filter(([name]) => !isIt(name)))
}
