import { privately } from '../answers.ts'
import type { Delivery } from '../gate/delivery.ts'

/** As much of node:http's response as is needed, so that nobody has to install its types. */
export type NodeResponse = {
  statusCode: number
  headersSent: boolean
  writableFinished: boolean
  destroyed?: boolean
  errored?: unknown
  /** Null while another request's answer is written to it. */
  socket?: NodeSocket | null | undefined
  /** HTTP/2 only. */
  stream?: NodeStream | undefined
  getHeader(name: string): unknown
  setHeader(name: string, value: string): unknown
  removeHeader(name: string): unknown
  writeHead(status: number, headers?: Record<string, string | string[]>): unknown
  end(body?: string): unknown
  once(event: 'close' | 'finish' | 'socket', listener: () => void): unknown
  removeListener(event: 'close' | 'finish', listener: () => void): unknown
}

type NodeStream = { writableFinished: boolean; destroyed: boolean; errored?: unknown }

type NodeSocket = {
  bytesWritten: number
  readableEnded: boolean
  errored?: unknown
  once(event: 'timeout', listener: () => void): unknown
  removeListener(event: 'timeout', listener: () => void): unknown
}

/** Undefined: the connection was closed first, and whatever it did meanwhile was stopped. */
export async function whileConnected<T>(
  response: NodeResponse,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController()
  const { signal } = controller
  const leave = (): void => controller.abort()
  // Whatever ran before may have taken longer than the customer waited, and the event does not come twice.
  if (response.destroyed || response.stream?.destroyed) return undefined
  response.once('close', leave)
  try {
    return await work(signal)
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  } finally {
    response.removeListener('close', leave)
  }
}

/** Adds what a paid answer has to say, and finds out whether it was delivered. */
export function follow(response: NodeResponse, delivery: Delivery): void {
  finishHead(response, delivery)
  if (delivery.isWatched) decideDelivery(response, delivery)
}

/**
 * The first of these decides. The handler answers 4xx or 5xx: not delivered. The customer leaves before a byte of the answer was handed to
 * the socket: not delivered, once the handler has ended. They leave later, or stop reading until a timeout: delivered, or one payment would
 * buy many almost complete answers. The shop breaks the answer off: not delivered.
 */
function decideDelivery(response: NodeResponse, delivery: Delivery): void {
  const { end } = response
  let [socket, bytesBefore]: [NodeSocket | null | undefined, number] = [undefined, 0]
  let [hasEnded, hasLeft, hasTimedOut] = [false, false, false]

  const byStatus = (): void => {
    if (response.statusCode >= 400) delivery.release(`the handler answered ${response.statusCode}`)
    else delivery.deliver()
  }
  const afterLeaving = (): void => {
    if (delivery.releaseOnDisconnect) delivery.release('the customer left before the answer')
    else byStatus()
  }
  // In HTTP/2 Node itself finishes what the customer has reset.
  const isFinished = (): boolean => (response.stream ? hasEnded && response.stream.writableFinished : response.writableFinished)
  const hasSent = (): boolean => (response.stream ? response.headersSent : (socket?.bytesWritten ?? 0) > bytesBefore)
  const hasShopBroken = (): boolean => {
    // Not by the code of the reset, which the customer can choose as well.
    if (response.stream) return isOwnError(response.stream.errored)
    if (response.errored) return true
    return !(hasTimedOut || socket?.readableEnded || socket?.errored)
  }
  const timeOut = (): void => {
    hasTimedOut = true
  }
  const useSocket = (): void => {
    socket = response.socket
    bytesBefore = socket?.bytesWritten ?? 0
    socket?.once('timeout', timeOut)
  }
  const close = (): void => {
    socket?.removeListener('timeout', timeOut)
    if (delivery.isDecided) return
    if (isFinished()) byStatus()
    else if (hasShopBroken()) delivery.release('the answer broke off')
    else if (hasSent()) byStatus()
    else if (hasEnded) afterLeaving()
    else hasLeft = true
  }
  response.once('close', close)
  response.once('finish', () => {
    if (!hasLeft && isFinished()) byStatus()
  })
  // Requests may come one behind the other over one connection, and each has to wait for it.
  if (response.socket) useSocket()
  else response.once('socket', useSocket)
  delivery.hasBegun = hasSent
  response.end = function (this: NodeResponse, ...args: unknown[]) {
    const result = Reflect.apply(end, this, args)
    hasEnded = true
    if (hasLeft) afterLeaving()
    else if (response.statusCode >= 400) byStatus()
    return result
  } as NodeResponse['end']
}

/** Node's own error stands for a reset that came from the other side. */
const isOwnError = (error: unknown): boolean =>
  error instanceof Error && (error as { code?: unknown }).code !== 'ERR_HTTP2_STREAM_ERROR'

/**
 * What the handler answers is known when its head is written, and not before: only then it is clear whether there is a delivery to give a
 * receipt for, and what the handler itself says of caches.
 */
function finishHead(response: NodeResponse, delivery: Delivery): void {
  const { writeHead } = response
  response.writeHead = function (this: NodeResponse, status: number, ...rest: unknown[]) {
    const given = rest.find((one) => typeof one === 'object' && one !== null)
    const pairs = pairsOf(given)
    const own = pairs.findLast(([name]) => name === 'cache-control')?.[1] ?? response.getHeader('cache-control')
    response.setHeader('cache-control', privately(own === undefined ? undefined : String(own)))
    const receipt = delivery.receiptFor(status)
    if (receipt === undefined) response.removeHeader('payment-receipt')
    else response.setHeader('payment-receipt', receipt)
    const others = rest.map((one) => (one === given ? withoutCacheControl(one) : one))
    return Reflect.apply(writeHead, this, [status, ...others])
  } as NodeResponse['writeHead']
}

/** Headers come as an object, or as a list of names and values in turns. */
function pairsOf(headers: unknown): [name: string, value: unknown][] {
  const pairs: [string, unknown][] = Array.isArray(headers)
    ? headers.flatMap((name, at): [string, unknown][] => (at % 2 === 0 ? [[name, headers[at + 1]]] : []))
    : Object.entries(headers ?? {})
  return pairs.map(([name, value]) => [name.toLowerCase(), value])
}

function withoutCacheControl(headers: unknown): unknown {
  const isIt = (name: unknown): boolean => typeof name === 'string' && name.toLowerCase() === 'cache-control'
  if (Array.isArray(headers)) return headers.filter((_, at) => !isIt(headers[at - (at % 2)]))
  return Object.fromEntries(Object.entries(headers ?? {}).filter(([name]) => !isIt(name)))
}
