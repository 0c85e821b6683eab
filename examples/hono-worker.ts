import { Boltyard } from '@boltyard/sdk'
import { paywall } from '@boltyard/sdk/hono'
import { Hono, type MiddlewareHandler } from 'hono'
import { env } from 'hono/adapter'

/**
 * For Cloudflare Workers, Deno, Bun and other runtimes that call the exported `fetch`. Each word costs 1 sat, so the price depends on the
 * query, and the query is part of the resource: a payment for five words does not buy five hundred.
 */
type Settings = { SERVICE_API_KEY: string; SERVICE_BASE_URL?: string; NODE_ID: string }

const app = new Hono()
const words = (text: string | undefined): number => Math.min(500, Math.max(1, Math.floor(Number(text)) || 1))

// A worker gets its settings only with the first request.
let charge: MiddlewareHandler | undefined

app.get(
  '/lorem',
  (c, next) => {
    const { SERVICE_API_KEY: apiKey, SERVICE_BASE_URL: baseUrl, NODE_ID: nodeId } = env<Settings>(c)
    charge ??= paywall({
      client: new Boltyard({ apiKey, baseUrl }),
      nodeId,
      amountSat: (context) => words(context.req.query('words')),
      description: (context) => `${words(context.req.query('words'))} words of Latin`,
    })
    return charge(c, next)
  },
  (c) =>
    c.text(
      Array(words(c.req.query('words')))
        .fill('lorem')
        .join(' '),
    ),
)

export default app
