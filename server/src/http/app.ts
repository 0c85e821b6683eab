import type { RequestListener, Server } from 'node:http'
import fastify, { type FastifyInstance } from 'fastify'
import { addApiDocument } from './api-document.ts'
import { linkRoutes } from './dashboard/links.ts'
import { operatorSessionRoutes } from './dashboard/operator.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { signInRoutes } from './dashboard/sign-in.ts'
import type { AppDeps, RouteDeps } from './deps.ts'
import { docsSite } from './docs-site.ts'
import { edgeOf, trustedProxies } from './edge.ts'
import { healthRoutes } from './health.ts'
import { acceptOnlyJson } from './hooks/body.ts'
import { renderClientError, renderProblems, renderRouterError } from './hooks/errors.ts'
import { measureRequests } from './hooks/measure.ts'
import { addLimits } from './hooks/rate-limit.ts'
import { logRequests } from './hooks/request-log.ts'
import { meRoutes } from './hooks/session.ts'
import { createListener, listenOnBothLoopbacks } from './listener.ts'
import { settledRoutes } from './node-events.ts'
import { NodeProxy } from './node-proxy/proxy.ts'
import { nodeTargets } from './node-proxy/target.ts'
import { operatorRoutes } from './operator/accounts.ts'
import { operatorInstallationRoutes } from './operator/installation.ts'
import { operatorLinkRoutes } from './operator/links.ts'
import { operatorNodeRoutes } from './operator/nodes.ts'
import { addSchemaCompilers } from './schema-compilers.ts'
import { appFiles } from './static.ts'
import { apiKeyRoutes } from './v1/api-key.ts'
import { eventRoutes } from './v1/events.ts'
import { nodeRoutes } from './v1/nodes.ts'
import { gatewayRoutes } from './v1/payments.ts'
import { webhookRoutes } from './v1/webhooks.ts'
import { x402Routes } from './v1/x402.ts'

export type App = FastifyInstance

export const BODY_LIMIT_BYTES = 64 * 1024

/** The service's own routes. The node proxy and static files set their own caching headers. */
const API = /^\/(v1|operator|internal|dashboard\/api)\//

export async function buildApp(deps: AppDeps): Promise<App> {
  const { config } = deps
  const edge = edgeOf(config, deps.isStopping)
  const createServer = (service: RequestListener): Server => createListener({ service, proxy: () => proxy })
  const app = fastify({
    serverFactory: createServer,
    bodyLimit: BODY_LIMIT_BYTES,
    trustProxy: trustedProxies(config.trustProxy),
    requestIdHeader: false,
    genReqId: edge.requestIdOf,
    loggerInstance: deps.logger,
    routerOptions: { maxParamLength: 200 },
    return503OnClosing: false,
    // On an overloaded machine, loading a plugin may take longer than the default of ten seconds.
    pluginTimeout: 120_000,
    frameworkErrors: renderRouterError,
    clientErrorHandler: renderClientError,
  })
  if (config.host === 'localhost') listenOnBothLoopbacks(app, () => createServer(app.routing))
  addSchemaCompilers(app)
  acceptOnlyJson(app)
  renderProblems(app)
  if (config.metrics || config.traces) measureRequests(app, config.trustProxy)
  logRequests(app, deps.requests)
  // These hooks run for every request. They use callbacks, because each promise costs time.
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(edge.headers(request.id))
    const { url, config: route } = request.routeOptions
    // Some of these responses contain seeds, passwords, keys and links, and caching the others has no benefit.
    if (url !== undefined && API.test(url)) reply.header('cache-control', 'no-store')
    done(edge.refusal(request.raw, { url, isHealthCheck: route.isHealthCheck }))
  })
  // A client that keeps an idle connection open would keep us from stopping.
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
  await app.register(x402Routes(routeDeps))
  await app.register(eventRoutes(routeDeps))
  await app.register(webhookRoutes(routeDeps))
  await app.register(settledRoutes(routeDeps), { prefix: '/internal/settled' })
  await app.register(meRoutes(routeDeps), { prefix: '/dashboard/api' })
  await app.register(signInRoutes(routeDeps), { prefix: '/dashboard/api/auth' })
  await app.register(linkRoutes(routeDeps), { prefix: '/dashboard/api/link' })
  await app.register(dashboardRoutes(routeDeps))
  await app.register(appFiles(deps.appDirectory, () => deps.signIn.loadAhead()))
  await app.register(operatorSessionRoutes(routeDeps))
  const { operatorSessions } = deps
  if (operatorSessions !== undefined) {
    const operatorDeps = { ...routeDeps, operatorSessions }
    await app.register(operatorRoutes(operatorDeps))
    await app.register(operatorLinkRoutes(operatorDeps))
    await app.register(operatorNodeRoutes(operatorDeps))
    await app.register(operatorInstallationRoutes(operatorDeps))
  }
  const targetOf = nodeTargets(config.nodeDomain)
  const { lookUpNode: lookUp, reportSilence } = deps
  const proxy = new NodeProxy({ targetOf, lookUp, reportSilence, calls: limits, edge, log: app.log })
  app.addHook('preClose', async () => proxy.closeWebsockets())
  app.addHook('onClose', async () => proxy.close())
  addApiDocument(app)
  await app.register(docsSite(deps.docsDirectory))
  await app.ready()
  return app
}
