import { privately } from './answers.ts'
import { type Decision, Gate, type Pass, type PaywallOptions } from './gate.ts'
import { rememberPayment } from './paid.ts'

export { paymentOf } from './paid.ts'

export type RequestOptions<R> = PaywallOptions<R> & {
  /** The pattern of the route, for the usual description; the path itself unless given. */
  route?: string | undefined
}

/**
 * `export const GET = paywall({ nodeId, amountSat: 10 }, (request) => Response.json(…))`: for whatever turns a request into a response. What
 * else the handler is given (Next's params, a worker's environment) goes through to it.
 */
export function paywall<R extends Request, C extends unknown[]>(
  options: RequestOptions<R>,
  handler: (request: R, ...context: C) => Response | Promise<Response>,
): (request: R, ...context: C) => Promise<Response> {
  // At the first request: a build that imports this has no key, and need not have one.
  let gate: Gate<R> | undefined
  return async (request, ...context) => {
    gate ??= new Gate(options)
    const { method, headers, signal, url } = request
    const route = options.route ?? new URL(url).pathname
    const decision = await gate.decide({ method, route, authorization: headers.get('authorization'), signal, request })
    if (!decision.pass) return refused(decision)
    rememberPayment(request, decision.payment)
    try {
      return delivered(await handler(request, ...context), decision)
    } catch (error) {
      decision.undelivered()
      throw error
    }
  }
}

export function refused({ status, headers, body }: Exclude<Decision, Pass>): Response {
  const response = new Response(body, { status })
  for (const [name, value] of Object.entries(headers)) {
    response.headers.delete(name)
    for (const line of [value].flat()) response.headers.append(name, line)
  }
  return response
}

/** A copy: the headers of a response that came from elsewhere cannot be changed. */
export function delivered(answer: Response, pass: Pass): Response {
  const response = new Response(answer.body, answer)
  response.headers.set('cache-control', privately(response.headers.get('cache-control')))
  const receipt = pass.headers['Payment-Receipt']
  if (receipt !== undefined && answer.status < 400) response.headers.set('payment-receipt', receipt)
  if (answer.status >= 500) pass.undelivered()
  return response
}
