import { paywall } from '@boltyard/sdk/hono'
import { Hono } from 'hono'

/**
 * For Cloudflare Workers, Deno, Bun and whatever else calls `fetch` of what a module exports. Words are 1 sat each, so the price is in the
 * request; the description has the number too, and so what was paid for five words does not buy five hundred.
 */
const app = new Hono()
const words = (text: string | undefined): number => Math.min(500, Math.max(1, Math.floor(Number(text)) || 1))

app.get(
  '/lorem',
  paywall({
    nodeId: process.env.NODE_ID ?? '',
    amountSat: (c) => words(c.req.query('words')),
    description: (c) => `${words(c.req.query('words'))} words of Latin`,
  }),
  (c) =>
    c.text(
      Array(words(c.req.query('words')))
        .fill('lorem')
        .join(' '),
    ),
)

export default app
