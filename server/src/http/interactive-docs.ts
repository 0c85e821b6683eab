import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'

/** The one style element that Swagger UI writes into the page by script; another version may need another one. */
const SWAGGER_STYLE = "'sha256-RL3ie0nH+Lzz2YNqQN83mnU0J1ot4QL7b99vMdIX99w='"

/** The page shares its origin with the dashboard: nothing of it comes from elsewhere, nothing is inline, and nobody may frame it. */
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

export async function interactiveDocs(app: FastifyInstance): Promise<void> {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers({ 'referrer-policy': 'no-referrer', 'x-frame-options': 'DENY', 'cross-origin-opener-policy': 'same-origin' })
    done()
  })
  // The library's page has no viewport, and no option for one.
  app.addHook('onSend', (_request, _reply, payload, done) => {
    done(null, typeof payload === 'string' ? payload.replace(CHARSET, `${CHARSET}\n${VIEWPORT}`) : payload)
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_SECURITY_POLICY,
    // Its default sends the address of the document to a validator of its makers.
    uiConfig: { validatorUrl: null },
    theme: { title: 'Boltyard API' },
  })
}
