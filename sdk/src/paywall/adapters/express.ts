import { METHODS } from '../answers.ts'
import { type BindOptions, bindRequest, type HttpRequest } from '../binding.ts'
import type { Pass } from '../gate/gate.ts'
import type { PaywallOptions } from '../options.ts'
import { rememberDelivery } from '../paid.ts'
import { warn } from '../trouble.ts'
import type { Visit } from '../visit.ts'
import { type LazyGate, lazyGate, type Ready } from './lazy-gate.ts'
import { bodyOf, discardBody, linesOf, type NodeHeaders, type NodeRequest, paymentFieldsOf } from './node-request.ts'
import { follow, keepPrivate, type NodeResponse, whileConnected } from './node-response.ts'

export { discovery } from '../../discovery/adapters/node.ts'
export { paymentOf } from '../paid.ts'

/**
 * The parts of the request of Express 4 and 5 that are useful for a price. For more, annotate your function with Express's own type. Plain
 * `node:http` has only some of them: use its `IncomingMessage` there.
 */
export type ExpressRequest = IncomingRequest & {
  originalUrl: string
  path: string
  /** Set by the proxy if Express trusts it, as are `protocol` and `hostname`. */
  ip: string | undefined
  protocol: string
  hostname: string
  get(name: string): string | undefined
  params: Record<string, string | string[]>
  query: Record<string, unknown>
  body?: unknown
}

/** Has no `params`, `query` and `body`, because TypeScript would infer the types of later handlers from them. */
type IncomingRequest = {
  method?: string | undefined
  url?: string | undefined
  headers: NodeHeaders
  socket?: { remoteAddress?: string | undefined } | undefined
}
/** Properties added by Express. */
type Routed = {
  originalUrl?: string
  baseUrl?: string
  ip?: string
  protocol?: string
  app?: { get(setting: string): unknown }
  route?: { path?: unknown; methods?: Record<string, boolean> }
}
type Next = (error?: unknown) => unknown
type Handler = (request: IncomingRequest, response: NodeResponse, next: Next) => Promise<void> | undefined

/**
 * Charges for a route in Express 4 and 5: `app.get('/joke', paywall({ nodeId, amountSat: 10 }), (request, response) => …)`. In plain
 * `node:http`, create `const charge = paywall(…)` once, and call `charge(request, response, () => response.end('…'))`.
 */
export function paywall<R = ExpressRequest>(options: PaywallOptions<R>): Handler & Ready {
  const gate = lazyGate(options)
  const handler: Handler = (request, response, next) => {
    const passes = decision(gate, request, response)
    // No promise for a remembered credential, so that the rest of the chain runs synchronously, as it would without a paywall.
    return passes === true && isExpress(request) ? void next() : serve(passes, request, response, next)
  }
  return Object.assign(handler, { ready: gate.ready })
}

type Passes = true | Promise<boolean>

function decision<R>(gate: LazyGate<R>, request: IncomingRequest, response: NodeResponse): Passes {
  try {
    return mayPass(gate, request, response)
  } catch (error) {
    return Promise.reject(error)
  }
}

async function serve(passes: Passes, request: IncomingRequest, response: NodeResponse, next: Next): Promise<void> {
  try {
    if (passes !== true && !(await passes)) return
  } catch (error) {
    return isExpress(request) ? void next(error) : fail(response, error)
  }
  if (isExpress(request)) return void next()
  try {
    await next()
  } catch (error) {
    fail(response, error)
  }
}

/**
 * False if a response was sent, or the customer has disconnected. For a remembered credential, returns true without a promise.
 */
export function mayPass<R>(gate: LazyGate<R>, request: IncomingRequest, response: NodeResponse): Passes {
  const { method = 'GET', url = '/', headers } = request
  const routed = request as Routed
  const { originalUrl = url } = routed
  const visit = {
    method,
    route: routeOf(routed, originalUrl),
    url: originalUrl,
    ...paymentFieldsOf(headers),
    bind: (options: BindOptions) => bindRequest(httpRequestOf(request as IncomingRequest & NodeRequest, originalUrl), options),
    request: request as R,
  }
  const remembered = gate.recall(visit)
  return remembered ? admit(request, response, remembered) : decide(gate, visit, request, response)
}

async function decide<R>(gate: LazyGate<R>, visit: Visit<R>, request: IncomingRequest, response: NodeResponse): Promise<boolean> {
  const { ip, route } = request as Routed
  const clientAddress = ip ?? request.socket?.remoteAddress
  const methods = methodsOf(route?.methods)
  const decision = await whileConnected(response, (signal) => gate.decide({ ...visit, clientAddress, methods, signal }))
  if (!decision) return false
  if (!decision.pass) {
    discardBody(request as IncomingRequest & NodeRequest)
    response.writeHead(decision.status, decision.headers)
    response.end(decision.body)
    return false
  }
  return admit(request, response, decision)
}

function admit(request: IncomingRequest, response: NodeResponse, { delivery, isPrivate }: Pass): true {
  if (delivery) {
    rememberDelivery(request, delivery)
    follow(response, delivery)
  } else if (isPrivate) keepPrivate(response)
  return true
}

function httpRequestOf(request: IncomingRequest & NodeRequest, url: string): HttpRequest {
  const { method = 'GET' } = request
  return {
    method,
    url,
    origin: originOf(request),
    header: (name) => linesOf(request, name),
    body: (limits) => bodyOf(request, limits),
  }
}

/** Has the same host as `request.host` in Express 5. In Express 4, `request.host` has no port. */
function originOf(request: IncomingRequest): string | undefined {
  const { protocol, app } = request as Routed
  const { headers, socket } = request
  const isTrusted = app?.get('trust proxy fn') as ((address: string | undefined, hop: number) => boolean) | undefined
  const forwarded = isTrusted?.(socket?.remoteAddress, 0) ? [headers['x-forwarded-host']].flat()[0]?.split(',')[0]?.trim() : ''
  const host = forwarded || (headers.host ?? headers[':authority'])
  const scheme = protocol ?? ((socket as { encrypted?: boolean } | undefined)?.encrypted ? 'https' : 'http')
  return typeof host === 'string' ? `${scheme}://${host}` : undefined
}

/** In `app.use`, Express has not matched a route yet, so a payment is bound to the path. */
function routeOf({ baseUrl = '', route }: Routed, url: string): string {
  return route?.path === undefined ? (url.split('?')[0] ?? '') : `${baseUrl}${route.path}`
}

/** Reports only common methods, because `app.all` registers many more. Express supports HEAD wherever it supports GET. */
function methodsOf(methods: Record<string, boolean> | undefined): string[] | undefined {
  if (methods === undefined) return undefined
  return METHODS.filter(
    (name) => methods._all || methods[name.toLowerCase()] || name === 'OPTIONS' || (name === 'HEAD' && methods.get),
  )
}

const isExpress = (request: object): boolean => (request as Routed).originalUrl !== undefined

/** Plain `node:http` has no error handler, and a `next` that ignores its argument would deliver for free. */
function fail(response: NodeResponse & { destroy?: () => unknown }, error: unknown): void {
  warn('handler', `A request failed: ${error instanceof Error ? error.message : String(error)}`)
  if (response.headersSent) return void response.destroy?.()
  response.writeHead(500, { 'Content-Type': 'text/plain' })
  response.end('Internal Server Error')
}
