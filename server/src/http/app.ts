import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import fastify, { type FastifyInstance } from 'fastify'
import type { Keys } from '../accounts/keys.ts'
import type { Config } from '../config.ts'
import { newId } from '../ids.ts'
import { Problem } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import { apiKeyRoutes } from './api-key.ts'
import { acceptOnlyJson } from './body.ts'
import { renderProblems } from './errors.ts'
import { healthRoutes } from './health.ts'
import { operatorRoutes } from './operator.ts'
import { addLimits, type Limits } from './rate-limit.ts'

export const BODY_LIMIT_BYTES = 64 * 1024

export type AppParts = { config: Config; sql: Sql; keys: Keys; operatorToken: string | undefined; isStopping: () => boolean }
export type RouteParts = AppParts & { limits: Limits }

/** Request ids of clients are kept when they are harmless in a log line. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

/** Never in a log: whatever authenticates somebody. Only the parts of a request that cannot hold it are written at all. */
const LOGGED = {
  req: (request: { id: string; method: string; url: string; ip: string }) => ({
    id: request.id,
    method: request.method,
    path: request.url.split('?')[0],
    ip: request.ip,
  }),
  res: (reply: { statusCode: number }) => ({ status: reply.statusCode }),
}

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
    logger: { level: config.logLevel, stream: process.stderr, serializers: LOGGED },
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: false } },
    routerOptions: { maxParamLength: 200 },
    return503OnClosing: false,
    requestTimeout: 30_000,
    connectionTimeout: 120_000,
  })
  acceptOnlyJson(app)
  renderProblems(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    if (parts.isStopping()) {
      throw new Problem('service_unavailable', 'The service is stopping. Try again shortly.', {
        headers: { 'retry-after': '5', connection: 'close' },
      })
    }
  })
  await app.register(swagger, { openapi: OPENAPI })
  const limits = await addLimits(app, config.rateLimit, config.store.kind === 'server' ? parts.sql : undefined)
  const routeParts: RouteParts = { ...parts, limits }
  await app.register(healthRoutes(routeParts))
  await app.register(apiKeyRoutes(routeParts), { prefix: '/v1' })
  if (parts.operatorToken !== undefined)
    await app.register(operatorRoutes(routeParts, parts.operatorToken), { prefix: '/operator/v1' })
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger())
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true })
  await app.ready()
  return app
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
