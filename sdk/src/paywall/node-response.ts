import { privately } from './answers.ts'
import type { Pass } from './gate.ts'

/** As much of node:http's response as is needed, so that nobody has to install its types. */
export type NodeResponse = {
  getHeader(name: string): unknown
  setHeader(name: string, value: string): unknown
  writeHead(status: number, headers?: Record<string, string | string[]>): unknown
  once(event: 'close', listener: () => void): unknown
  removeListener(event: 'close', listener: () => void): unknown
}

/** Undefined: the connection was closed first, and whatever it did meanwhile was stopped. */
export async function whileConnected<T>(
  response: NodeResponse,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController()
  const { signal } = controller
  const leave = (): void => controller.abort()
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

/**
 * What the handler answers is known when its head is written, and not before: only then it is clear whether there is a delivery to give a
 * receipt for, and what the handler itself says of caches.
 */
export function finishHead(response: NodeResponse, pass: Pass): void {
  const { writeHead } = response
  response.writeHead = function (this: NodeResponse, status: number, ...rest: unknown[]) {
    response.writeHead = writeHead
    const given = rest.find((one) => typeof one === 'object' && one !== null)
    const pairs = pairsOf(given)
    const own = pairs.findLast(([name]) => name === 'cache-control')?.[1] ?? response.getHeader('cache-control')
    response.setHeader('cache-control', privately(own === undefined ? undefined : String(own)))
    const receipt = pass.headers['Payment-Receipt']
    if (status >= 500) pass.undelivered()
    if (receipt !== undefined && status < 400) response.setHeader('payment-receipt', receipt)
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
