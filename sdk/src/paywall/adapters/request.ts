import { isForSharedCaches, privately } from '../answers.ts'
import type { WaitUntil } from '../gate/claims.ts'
import type { Delivery } from '../gate/delivery.ts'
import type { Decision, Pass } from '../gate/gate.ts'
import type { PaywallOptions } from '../options.ts'
import { rememberDelivery } from '../paid.ts'
import { warn } from '../trouble.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { bindWebRequest, discardBody, paymentFieldsOf } from './web-request.ts'

export { paymentOf } from '../paid.ts'

/** Next, for example, may use the container's name as the host, so that two containers reject each other's customers. */
const URL_UNSURE =
  'x402 payments are bound to the URL of the request, which may be an internal one behind a proxy. Set `publicUrl` to the URL that ' +
  'customers use, or to `(request) => request.url` if that is the same.'

export type RequestOptions<R> = PaywallOptions<R> & {
  /** The route pattern. Defaults to the path. */
  route?: string | undefined
}

/**
 * Charges for any function from Request to Response:
 * `export const GET = paywall({ nodeId, amountSat: 10 }, (request) => Response.json(…))`.
 * Further arguments (Next's params, a worker's environment) are passed on to the handler.
 */
export function paywall<R extends Request, C extends unknown[]>(
  options: RequestOptions<R>,
  handler: (request: R, ...context: C) => Response | Promise<Response>,
): ((request: R, ...context: C) => Promise<Response>) & Ready {
  const gate = lazyGate(options)
  // The warning is printed at the first request, because a build that imports the shop should print nothing.
  let isUrlUnsure = options.publicUrl === undefined && [options.protocols, options.protocol].flat().includes('x402')
  const paid = async (request: R, ...context: C): Promise<Response> => {
    if (isUrlUnsure) warn('x402 publicUrl', URL_UNSURE)
    isUrlUnsure = false
    const { method, headers, signal } = request
    const { pathname, search } = new URL(request.url)
    const decision = await gate.decide({
      method,
      route: options.route ?? pathname,
      url: `${pathname}${search}`,
      ...paymentFieldsOf(headers),
      bind: bindWebRequest(request),
      signal,
      waitUntil: waitUntilOf(context),
      request,
    })
    if (!decision.pass) return refused(decision, request)
    const { delivery } = decision
    if (!delivery) {
      const answer = await handler(request, ...context)
      return decision.isPrivate ? privateResponse(answer) : answer
    }
    rememberDelivery(request, delivery)
    awaitBody(request, delivery)
    try {
      return delivered(await handler(request, ...context), delivery, signal)
    } catch (error) {
      delivery.release('the handler failed')
      throw error
    }
  }
  return Object.assign(paid, { ready: gate.ready })
}

/** `waitUntil` from a worker's execution context. */
function waitUntilOf(context: unknown[]): WaitUntil | undefined {
  const execution = context.find((one) => typeof (one as { waitUntil?: unknown } | undefined)?.waitUntil === 'function')
  return execution === undefined ? undefined : (work) => (execution as { waitUntil: WaitUntil }).waitUntil(work)
}

export function refused({ status, headers, body }: Exclude<Decision, Pass>, request: Request): Response {
  discardBody(request)
  const response = new Response(body === '' ? null : body, { status })
  for (const [name, value] of Object.entries(headers)) {
    response.headers.delete(name)
    for (const line of [value].flat()) response.headers.append(name, line)
  }
  return response
}

/** Copies the response, because the headers of a fetched response are immutable. */
export function privateResponse(answer: Response, body: ReadableStream<Uint8Array> | null = answer.body): Response {
  const response = new Response(body, answer)
  response.headers.set('cache-control', privately(response.headers.get('cache-control')))
  for (const name of [...response.headers.keys()]) if (isForSharedCaches(name)) response.headers.delete(name)
  return response
}

/**
 * Until there is a response, the customer counts as keeping the handler waiting: nothing shows whether they have sent the whole
 * body.
 */
export function awaitBody(request: Request, delivery: Delivery): void {
  if (!delivery.isWatched || request.body === null || request.bodyUsed) return
  // Some worker runtimes do not give requests an abort signal.
  const left: AbortSignal | undefined = request.signal
  let wasKept = false
  delivery.isKeptWaiting = () => {
    wasKept = left?.aborted !== true
    return wasKept
  }
  const leave = (): void => {
    // After `isKeptWaiting` was true, the claim no longer lapses by itself, and the handler may never end.
    if (wasKept && delivery.releaseOnDisconnect && !delivery.hasBegun()) delivery.release('the customer left before the response')
  }
  left?.addEventListener('abort', leave, { once: true })
}

export function delivered(answer: Response, delivery: Delivery, left: AbortSignal | null | undefined): Response {
  if (answer.status >= 400) delivery.release(`the handler returned ${answer.status}`)
  else if (left?.aborted && delivery.releaseOnDisconnect) delivery.release('the customer left before the response')
  else if (answer.body === null) delivery.deliver()
  const isFollowed = delivery.isWatched && !delivery.isDecided
  const body = answer.body === null || !isFollowed ? answer.body : followed(answer.body, delivery, left)
  const response = privateResponse(answer, body)
  const receipt = delivery.receiptFor(answer.status)
  if (receipt) response.headers.set(receipt.header, receipt.value)
  return response
}

/**
 * Passes the body through. Delivered if it is read to the end, or cancelled by the customer after the first bytes; otherwise one payment
 * could buy many almost complete responses. Not delivered if it is cancelled earlier, or aborted by the shop.
 */
function followed(
  body: ReadableStream<Uint8Array>,
  delivery: Delivery,
  left: AbortSignal | null | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let hasSent = false
  delivery.hasBegun = () => hasSent
  // From here on, a slow reader can delay the delivery.
  delivery.isKeptWaiting = () => true
  const leave = (): void => {
    left?.removeEventListener('abort', leave)
    if (hasSent || !delivery.releaseOnDisconnect) delivery.deliver()
    else delivery.release('the customer left before the response')
  }
  // Some worker runtimes do not give requests an abort signal.
  left?.addEventListener('abort', leave)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) {
            delivery.deliver()
            left?.removeEventListener('abort', leave)
            return controller.close()
          }
          hasSent = true
          controller.enqueue(value)
        } catch (error) {
          delivery.release('the response was cut off')
          controller.error(error)
        }
      },
      cancel(reason) {
        leave()
        return reader.cancel(reason)
      },
    },
    // Disables read-ahead, so that everything read from the handler's body has been passed on.
    { highWaterMark: 0 },
  )
}
