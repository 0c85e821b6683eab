import { Gate, type PaywallOptions } from './gate.ts'
import { finishHead, type NodeResponse, whileConnected } from './node-response.ts'
import { rememberPayment } from './paid.ts'

export { paymentOf } from './paid.ts'

/** As much of Express's request as is needed here and is of use for a price; annotate your function with Express's own type for more. */
export type ExpressRequest = {
  method: string
  originalUrl: string
  baseUrl: string
  path: string
  route?: { path?: unknown } | undefined
  headers: { authorization?: string | undefined; [name: string]: string | string[] | undefined }
  params: Record<string, string | string[]>
  query: Record<string, unknown>
  body?: unknown
}
export type ExpressResponse = NodeResponse & { end(body: string): unknown }

/** `app.get('/joke', paywall({ nodeId, amountSat: 10 }), (request, response) => …)` */
export function paywall<R extends ExpressRequest = ExpressRequest>(
  options: PaywallOptions<R>,
): (request: R, response: ExpressResponse, next: (error?: unknown) => void) => Promise<void> {
  const gate = new Gate(options)
  return async (request, response, next) => {
    const { method, headers } = request
    const visit = { method, route: routeOf(request), authorization: headers.authorization, request }
    const decision = await whileConnected(response, (signal) => gate.decide({ ...visit, signal }))
    if (!decision) return
    if (!decision.pass) {
      response.writeHead(decision.status, decision.headers)
      response.end(decision.body)
      return
    }
    rememberPayment(request, decision.payment)
    finishHead(response, decision)
    next()
  }
}

/** Before all routes (`app.use`) no pattern has been matched yet: the path itself binds what is paid for to it. */
function routeOf({ baseUrl, route, originalUrl }: ExpressRequest): string {
  return route?.path === undefined ? (originalUrl.split('?')[0] ?? '') : `${baseUrl}${route.path}`
}
