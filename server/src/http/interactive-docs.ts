import type { StaticDocumentSpec } from '@fastify/swagger'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'

/** The hash of the style element that Swagger UI adds by script; another version may need a different one. */
const SWAGGER_STYLE = "'sha256-RL3ie0nH+Lzz2YNqQN83mnU0J1ot4QL7b99vMdIX99w='"

/** The page shares its origin with the dashboard, so it loads nothing from elsewhere, has nothing inline, and cannot be framed. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  `style-src 'self' ${SWAGGER_STYLE}`,
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

const CHARSET = '<meta charset="UTF-8">'
const VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">'

/**
 * The page is built for its first visitor: loading it takes a sixth of the startup time, and most processes never show it. Routes cannot be
 * added to a listening app, so the page is an app of its own, behind two routes of ours.
 */
export function interactiveDocs(document: object) {
  return async (app: FastifyInstance): Promise<void> => {
    let page: Promise<FastifyInstance> | undefined
    const show = async (request: FastifyRequest, reply: FastifyReply) => {
      page ??= buildPage(document)
      const { url = '', method } = request.raw
      const answer = await (await page).inject({ method: method === 'HEAD' ? 'HEAD' : 'GET', url, headers: request.headers })
      if (answer.statusCode === 404) return reply.callNotFound()
      const { connection, date, 'transfer-encoding': _, ...headers } = answer.headers
      return reply.code(answer.statusCode).headers(headers).send(answer.rawPayload)
    }
    const hidden = { schema: { hide: true } }
    app.get('/docs', hidden, show)
    app.get('/docs/*', { ...hidden, config: { isFallback: true } }, show)
  }
}

async function buildPage(document: object): Promise<FastifyInstance> {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import('@fastify/swagger'),
    import('@fastify/swagger-ui'),
  ])
  const app = fastify()
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers({ 'referrer-policy': 'no-referrer', 'x-frame-options': 'DENY', 'cross-origin-opener-policy': 'same-origin' })
    done()
  })
  // The library's page has no viewport meta tag, and no option for one.
  app.addHook('onSend', (_request, _reply, payload, done) => {
    done(null, typeof payload === 'string' ? payload.replace(CHARSET, `${CHARSET}\n${VIEWPORT}`) : payload)
  })
  // The library's types only cover OpenAPI 3.0, but it passes the document through unchanged.
  const specification = { document } as unknown as StaticDocumentSpec
  await app.register(swagger, { mode: 'static', specification })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_SECURITY_POLICY,
    // By default, the page sends the document's URL to the library authors' validator.
    uiConfig: { validatorUrl: null },
    theme: { title: 'Boltyard API' },
  })
  await app.ready()
  return app
}
