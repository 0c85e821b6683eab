import fastify, { type FastifyInstance } from 'fastify'
import type { Config } from '../config.ts'
import { newId } from '../platform/ids.ts'
import { Problem } from '../problems.ts'
import { addApiDocument } from './api-document.ts'
import { linkRoutes } from './dashboard/links.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { signInRoutes } from './dashboard/sign-in.ts'
import type { AppDeps, RouteDeps } from './deps.ts'
import { healthRoutes } from './health.ts'
import { acceptOnlyJson } from './hooks/body.ts'
import { renderClientError, renderProblems, renderRouterError } from './hooks/errors.ts'
import { requireKnownHost, rewriteNodeHost } from './hooks/hosts.ts'
import { addLimits } from './hooks/rate-limit.ts'
import { meRoutes } from './hooks/session.ts'
import { interactiveDocs } from './interactive-docs.ts'
import { compileSchemasLazily } from './lazy-schemas.ts'
import { settledRoutes } from './node-events.ts'
import { addNodeProxy } from './node-proxy/proxy.ts'
import { operatorRoutes } from './operator/accounts.ts'
import { operatorLinkRoutes } from './operator/links.ts'
import { operatorNodeRoutes } from './operator/nodes.ts'
import { appFiles } from './static.ts'
import { apiKeyRoutes } from './v1/api-key.ts'
import { nodeRoutes } from './v1/nodes.ts'
import { gatewayRoutes } from './v1/payments.ts'

export type App = FastifyInstance

export const BODY_LIMIT_BYTES = 64 * 1024

/** Of the service's own routes; those of the node proxy and of files say themselves what may be kept. */
const API = /^\/(v1|operator|internal|dashboard\/api)\//
/** Names below ours may be other people's: they decide for themselves. */
const ONE_YEAR = 'max-age=31536000'

/** Request ids of clients are kept when they are harmless in a log line. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

export async function buildApp(deps: AppDeps): Promise<App> {
  const { config } = deps
  const app = fastify({
    bodyLimit: BODY_LIMIT_BYTES,
    trustProxy: trustedProxies(config.trustProxy),
    requestIdHeader: false,
    genReqId: ({ headers }) => {
      const given = headers['x-request-id']
      return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : newId('req')
    },
    loggerInstance: deps.logger,
    rewriteUrl: rewriteNodeHost(config.nodeDomain),
    routerOptions: { maxParamLength: 200 },
    return503OnClosing: false,
    frameworkErrors: renderRouterError,
    clientErrorHandler: renderClientError,
    // We ask for it ourselves: Node's own refusal has no body.
    http: { requireHostHeader: false },
    requestTimeout: 30_000,
    connectionTimeout: 120_000,
  })
  // Expectations other than 100-continue may be ignored; Node's own refusal has no body.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  compileSchemasLazily(app)
  acceptOnlyJson(app)
  renderProblems(app)
  const unknownHost = requireKnownHost(config)
  const isHttps = config.publicUrl.startsWith('https:')
  // These run for every request: with a callback, since each promise costs one.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
    if (isHttps) reply.header('strict-transport-security', ONE_YEAR)
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      return done(new Problem('bad_request', 'The Host header is missing.'))
    const { url, config: route } = request.routeOptions
    // Seeds, passwords, keys and links are in some of these answers, and no cache has a use for the others.
    if (url !== undefined && API.test(url)) reply.header('cache-control', 'no-store')
    const misdirected = route.isHealthCheck ? undefined : unknownHost(request.raw, url)
    if (misdirected) return done(misdirected)
    done(deps.isStopping() ? stopping() : undefined)
  })
  // Who keeps a finished connection open would keep us from stopping.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (deps.isStopping()) reply.header('connection', 'close')
    done(null, payload)
  })
  const limits = await addLimits(app, config.rateLimit, deps.countHit)
  const routeDeps: RouteDeps = { ...deps, limits }
  await app.register(healthRoutes(routeDeps))
  await app.register(apiKeyRoutes(routeDeps))
  await app.register(nodeRoutes(routeDeps))
  await app.register(gatewayRoutes(routeDeps))
  await app.register(settledRoutes(routeDeps), { prefix: '/internal/settled' })
  await app.register(meRoutes(routeDeps), { prefix: '/dashboard/api' })
  await app.register(signInRoutes(routeDeps), { prefix: '/dashboard/api/auth' })
  await app.register(linkRoutes(routeDeps), { prefix: '/dashboard/api/link' })
  await app.register(dashboardRoutes(routeDeps))
  await app.register(appFiles(deps.appDirectory))
  if (deps.operatorToken !== undefined) {
    await app.register(operatorRoutes(routeDeps, deps.operatorToken))
    await app.register(operatorLinkRoutes(routeDeps, deps.operatorToken))
    await app.register(operatorNodeRoutes(routeDeps, deps.operatorToken))
  }
  const proxy = await addNodeProxy(app, { lookUp: deps.lookUpNode, nodeDomain: config.nodeDomain, calls: limits })
  app.addHook('onClose', async () => proxy.close())
  await addApiDocument(app)
  await app.register(interactiveDocs)
  await app.ready()
  return app
}

const stopping = (): Problem =>
  new Problem('service_unavailable', 'The service is stopping. Try again shortly.', {
    headers: { 'retry-after': '5', connection: 'close' },
  })

/** So many hops, counted from us, are ours; what a client claims beyond them is not believed. */
function trustedProxies(trust: Config['trustProxy']): string[] | false | ((address: string, hop: number) => boolean) {
  return typeof trust === 'number' ? (_address, hop) => hop < trust : trust
}
