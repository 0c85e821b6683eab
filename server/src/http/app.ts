import swagger from '@fastify/swagger'
import fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import type { TopUps } from '../accounts/credit/top-ups.ts'
import type { Keys } from '../accounts/keys/keys.ts'
import type { Links } from '../accounts/people/links.ts'
import type { SignIn } from '../accounts/people/sign-in.ts'
import type { Config } from '../config.ts'
import type { Deliveries } from '../gateway/deliveries.ts'
import type { Payments } from '../gateway/payments.ts'
import type { Validation } from '../gateway/validation.ts'
import type { Nodes } from '../nodes/nodes.ts'
import type { Wallets } from '../nodes/wallets.ts'
import { newId } from '../platform/ids.ts'
import { Problem } from '../problems.ts'
import type { Hub } from '../sandbox/hub.ts'
import type { Settlements } from '../settlements/settlements.ts'
import type { Sql } from '../store/db.ts'
import { linkRoutes, operatorLinkRoutes } from './dashboard/links.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { signInRoutes } from './dashboard/sign-in.ts'
import { healthRoutes } from './health.ts'
import { acceptOnlyJson } from './hooks/body.ts'
import { renderClientError, renderProblems, renderRouterError } from './hooks/errors.ts'
import { requireKnownHost, rewriteNodeHost } from './hooks/hosts.ts'
import { addLimits, type Limits } from './hooks/rate-limit.ts'
import { meRoutes } from './hooks/session.ts'
import { interactiveDocs } from './interactive-docs.ts'
import { settledRoutes } from './node-events.ts'
import { addNodeProxy, type LookUpNode } from './node-proxy/proxy.ts'
import { operatorRoutes } from './operator/accounts.ts'
import { operatorNodeRoutes } from './operator/nodes.ts'
import { strict } from './schemas.ts'
import { appFiles } from './static.ts'
import { apiKeyRoutes } from './v1/api-key.ts'
import { nodeRoutes } from './v1/nodes.ts'
import { gatewayRoutes } from './v1/payments.ts'

export const BODY_LIMIT_BYTES = 64 * 1024

export type AppParts = {
  config: Config
  sql: Sql
  keys: Keys
  signIn: SignIn
  links: Links
  nodes: Nodes
  wallets: Wallets
  payments: Payments
  validation: Validation
  deliveries: Deliveries
  topUps: TopUps
  settlements: Settlements
  hub: Hub | undefined
  lookUpNode: LookUpNode
  operatorToken: string | undefined
  /** Where the built dashboard lies. */
  appDirectory: string
  masterKeyId: string
  isStopping: () => boolean
  logger: FastifyBaseLogger
}
export type RouteParts = AppParts & { limits: Limits }

/** Of the service's own routes; those of the node proxy and of files say themselves what may be kept. */
const API = /^\/(v1|operator|internal|dashboard\/api)\//
/** Names below ours may be other people's: they decide for themselves. */
const ONE_YEAR = 'max-age=31536000'

/** Request ids of clients are kept when they are harmless in a log line. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

export async function buildApp(parts: AppParts): Promise<FastifyInstance> {
  const { config } = parts
  const app = fastify({
    bodyLimit: BODY_LIMIT_BYTES,
    trustProxy: trustedProxies(config.trustProxy),
    requestIdHeader: false,
    genReqId: ({ headers }) => {
      const given = headers['x-request-id']
      return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : newId('req')
    },
    loggerInstance: parts.logger,
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: false } },
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
  acceptOnlyJson(app)
  renderProblems(app)
  const unknownHost = requireKnownHost(config)
  const isHttps = config.publicUrl.startsWith('https:')
  // These run for every request: with a callback, since each promise costs one.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
    if (isHttps) reply.header('strict-transport-security', ONE_YEAR)
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      return done(new Problem('bad_request', 'The header Host is missing.'))
    const { url, config: route } = request.routeOptions
    // Seeds, passwords, keys and links are in some of these answers, and no cache has a use for the others.
    if (url !== undefined && API.test(url)) reply.header('cache-control', 'no-store')
    const misdirected = route.isHealthCheck ? undefined : unknownHost(request.raw, url)
    if (misdirected) return done(misdirected)
    done(parts.isStopping() ? stopping() : undefined)
  })
  // Who keeps a finished connection open would keep us from stopping.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (parts.isStopping()) reply.header('connection', 'close')
    done(null, payload)
  })
  // No parameter is ignored: a route that names none takes none.
  app.addHook('onRoute', (route) => {
    const tags = [tagOf(route.url)]
    if (/^\/(v1|operator)\//.test(route.url)) route.schema = { querystring: strict({}), tags, ...route.schema }
    else route.schema = { tags, ...route.schema }
  })
  await app.register(swagger, { openapi: OPENAPI })
  const limits = await addLimits(app, config.rateLimit, config.store.kind === 'server' ? parts.sql : undefined)
  const routeParts: RouteParts = { ...parts, limits }
  await app.register(healthRoutes(routeParts))
  await app.register(apiKeyRoutes(routeParts), { prefix: '/v1' })
  await app.register(nodeRoutes(routeParts), { prefix: '/v1/nodes' })
  await app.register(gatewayRoutes(routeParts), { prefix: '/v1/gateway/payments' })
  await app.register(settledRoutes(routeParts), { prefix: '/internal/settled' })
  await app.register(meRoutes(routeParts), { prefix: '/dashboard/api' })
  await app.register(signInRoutes(routeParts), { prefix: '/dashboard/api/auth' })
  await app.register(linkRoutes(routeParts), { prefix: '/dashboard/api/link' })
  await app.register(dashboardRoutes(routeParts), { prefix: '/dashboard/api' })
  await app.register(appFiles(parts.appDirectory))
  if (parts.operatorToken !== undefined) {
    await app.register(operatorRoutes(routeParts, parts.operatorToken), { prefix: '/operator/v1' })
    await app.register(operatorLinkRoutes(routeParts, parts.operatorToken), { prefix: '/operator/v1' })
    await app.register(operatorNodeRoutes(routeParts, parts.operatorToken), { prefix: '/operator/v1' })
  }
  const proxy = await addNodeProxy(app, { lookUp: parts.lookUpNode, nodeDomain: config.nodeDomain, calls: limits })
  app.addHook('onClose', async () => proxy.close())
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger())
  await app.register(interactiveDocs)
  await app.ready()
  return app
}

const stopping = (): Problem =>
  new Problem('service_unavailable', 'The service is stopping. Try again shortly.', {
    headers: { 'retry-after': '5', connection: 'close' },
  })

/** The headings of the interactive page. */
function tagOf(path: string): string {
  if (path.startsWith('/operator/v1/sandbox')) return 'Sandbox'
  if (path.startsWith('/operator')) return 'Operator'
  if (path.startsWith('/v1/nodes')) return 'Nodes'
  if (path.startsWith('/v1/gateway')) return 'Gateway'
  return path.startsWith('/v1') ? 'Keys' : 'Health'
}

/** So many hops, counted from us, are ours; what a client claims beyond them is not believed. */
function trustedProxies(trust: Config['trustProxy']): string[] | false | ((address: string, hop: number) => boolean) {
  return typeof trust === 'number' ? (_address, hop) => hop < trust : trust
}

const OPENAPI = {
  openapi: '3.1.0',
  info: { title: 'Boltyard', version: '1', description: 'Hosted Lightning nodes, and HTTP 402 for anyone.' },
  components: { securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' }, operator: { type: 'http', scheme: 'bearer' } } },
} as const
