/** Lines of the docs, each in a program for its framework, compiled with `strict`. */
export const OPTIONS = "const options = { nodeId: 'node_1', amountSat: 10 }"

export type Program = { name: string; page: string; line: string; program: (line: string) => string }

const EXPRESS = `import express from 'express'
import { paymentOf, paywall } from '@boltyard/sdk/express'
const app = express()
${OPTIONS}
const handler: express.RequestHandler = (_request, response) => { response.json({ joke: '…' }) }`

const FASTIFY = `import { fastify } from 'fastify'
import { paymentOf, paywall } from '@boltyard/sdk/fastify'
const app = fastify()
${OPTIONS}
const handler = async () => ({ joke: '…' })`

const HONO = `import { type Context, Hono } from 'hono'
import { paymentOf, paywall } from '@boltyard/sdk/hono'
const app = new Hono()
${OPTIONS}
const handler = (c: Context) => c.json({ joke: '…' })`

const HONO_STREAM = `import { streamText } from 'hono/streaming'
const tellStory = async (stream: { write: (text: string) => Promise<unknown> }) => void (await stream.write('Once'))`

/** Deliberately wrong: if the types are lost, everything is `any` and this is no longer an error. */
const WRONG = `// @ts-expect-error
paywall({ nodeId: 'node_1', amountSat: 'ten' })`

const SHOP = `${OPTIONS}
const shop = { title: 'Jokes', routes: { 'GET /joke': options } }`

/** One line for each framework. */
const DISCOVERY: Program[] = (
  [
    ['Express', 'express', 'app.use(discovery(shop))', `import express from 'express'\nconst app = express()`],
    [
      'Fastify',
      'fastify',
      `app.addHook('onRequest', discovery(shop))`,
      `import { fastify } from 'fastify'\nconst app = fastify()`,
    ],
    ['Hono', 'hono', 'app.use(discovery(shop))', `import { Hono } from 'hono'\nconst app = new Hono()`],
    ['Next', 'next', 'export const proxy = discovery(shop)', ''],
    ['Koa', 'koa', 'app.use(discovery(shop))', `import Koa from 'koa'\nconst app = new Koa()`],
    [
      'NestJS',
      'nest',
      'app.use(discovery(shop))',
      `import { NestFactory } from '@nestjs/core'\nconst app = await NestFactory.create(class {})`,
    ],
    ['Elysia', 'elysia', 'app.onRequest(discovery(shop))', `import { Elysia } from 'elysia'\nconst app = new Elysia()`],
  ] as const
).map(([name, entry, line, app]) => ({
  name: `${name}, discovery in one line`,
  page: 'docs/guides/be-found.md',
  line,
  program: () => `${app}
import { discovery, paywall } from '@boltyard/sdk/${entry}'
${SHOP}
${line}
// @ts-expect-error
discovery({ routes: {} })
void paywall`,
}))
DISCOVERY.push(
  {
    name: 'Request → Response, discovery',
    page: 'docs/guides/be-found.md',
    line: 'documents(request) ?? handler(request)',
    program: (line) => `import { discovery } from '@boltyard/sdk/discovery'
import { paywall } from '@boltyard/sdk/paywall'
${OPTIONS}
const handler = paywall(options, () => new Response('…'))
const documents = discovery({ title: 'Jokes', routes: { 'GET /joke': handler } })
export default { fetch: (request: Request) => ${line} }`,
  },
  {
    name: 'node:http, discovery',
    page: 'docs/guides/be-found.md',
    line: 'documents(request, response, () => handler(request, response))',
    program: (line) => `import { createServer, type RequestListener } from 'node:http'
import { discovery } from '@boltyard/sdk/express'
${SHOP}
const documents = discovery(shop)
const handler: RequestListener = (_request, response) => response.end('…')
createServer((request, response) => ${line})`,
  },
)

export const PROGRAMS: Program[] = [
  {
    name: 'The proxy',
    page: 'docs/guides/charge-without-code.md',
    line: `const proxy = createProxy({
  upstream: 'http://127.0.0.1:3000',
  node: 'node_…',
  routes: [{ match: 'GET /articles/:id', amountSat: 25 }],
})
await proxy.listen()
process.once('SIGTERM', () => proxy.close())`,
    program: (line) => `import { createProxy } from '@boltyard/sdk/proxy'\n${line}
// @ts-expect-error
createProxy({ upstream: '', node: '', routes: [{ match: '/', amountSat: 'ten' }] })`,
  },
  {
    name: 'Cloudflare Workers',
    page: 'docs/paywall.md',
    line: `import { Boltyard } from '@boltyard/sdk'
import { paywall } from '@boltyard/sdk/paywall'

type Env = { SERVICE_API_KEY: string; SERVICE_BASE_URL: string; NODE_ID: string }
type Context = { waitUntil(work: Promise<unknown>): void }
type Handler = (request: Request, env: Env, context: Context) => Promise<Response>

const handler: Handler = async () => Response.json({ joke: '…' })
let paid: Handler | undefined

export default {
  fetch(request: Request, env: Env, context: Context): Promise<Response> {
    const { SERVICE_API_KEY: apiKey, SERVICE_BASE_URL: baseUrl, NODE_ID: nodeId } = env
    paid ??= paywall({ client: new Boltyard({ apiKey, baseUrl }), nodeId, amountSat: 10 }, handler)
    return paid(request, env, context)
  },
}`,
    program: (line) => line,
  },
  {
    name: 'Express, the first lines of the page',
    page: 'docs/paywall.md',
    line: `const charge = paywall({ nodeId: 'node_…', amountSat: 10 })
await charge.ready()

app.get('/joke', charge, (request, response) => {
  response.json({ joke: '…' })
})`,
    program: (line) => `${EXPRESS}\n${line}\n${WRONG}`,
  },
  {
    name: 'Express',
    page: 'docs/paywall.md',
    line: `app.get('/joke', paywall(options), handler)`,
    program: (line) => `${EXPRESS}
${line}
${WRONG}
app.get('/offices', paywall({
  nodeId: 'node_1',
  amountSat: (q) => (q.ip === '192.0.2.1' ? 1 : q.path.length),
  description: (q) => \`\${q.protocol}://\${q.hostname}\${q.originalUrl}\`,
  resource: (q) => q.get('accept-language') ?? 'en',
  clientAddress: (q) => q.ip,
  free: (q) => q.headers['x-office'] === 'ours',
}), handler)
app.get('/annotated', paywall({ nodeId: 'node_1', amountSat: (q: express.Request) => q.subdomains.length }), handler)
app.get('/articles/:id', paywall({ nodeId: 'node_1', amountSat: (request) => Number(request.params.id) }), (request, response) => {
  const id: string = request.params.id
  response.json({ id, text: request.body.text, paid: paymentOf(request)?.amountSat })
})`,
  },
  {
    name: 'Hono, a stream',
    page: 'docs/paywall.md',
    line: `app.get('/story', paywall(options), (c) =>
  streamText(c, tellStory, async () => paymentOf(c)?.release('the story broke off')),
)`,
    program: (line) => `${HONO}\n${HONO_STREAM}\n${line}`,
  },
  {
    name: 'Express, the quick start',
    page: 'docs/quickstart.md',
    line: `app.get('/joke', paywall({ nodeId, amountSat: 10, protocol: 'both' }), (request, response) => response.json({ joke }))`,
    program: (line) => `${EXPRESS}\nconst [nodeId, joke] = ['node_1', '…']\n${line}`,
  },
  {
    name: 'Express, a price from the body',
    page: 'docs/paywall.md',
    line: `const words = (request: express.Request) => request.body.text.split(' ').length
app.post('/translate', express.json(), paywall({ nodeId, amountSat: words, resource: (request) => \`translate \${words(request)} words\` }), handler)`,
    program: (line) => `${EXPRESS}\nconst nodeId = 'node_1'\n${line}`,
  },
  {
    name: 'Express, several protocols',
    page: 'docs/paywall.md',
    line: `paywall({ nodeId, amountSat: 10, protocols: ['mpp', 'l402', 'x402'] })`,
    program: (line) => `${EXPRESS}\nconst nodeId = 'node_1'\napp.get('/joke', ${line}, handler)`,
  },
  {
    name: 'Express, the bytes of the body',
    page: 'docs/paywall.md',
    line: `express.json({ verify: (request, _response, bytes) => { Object.assign(request, { rawBody: bytes }) } })`,
    program: (line) => `${EXPRESS}\napp.use(${line})`,
  },
  {
    name: 'Koa',
    page: 'docs/paywall.md',
    line: `router.get('/joke', paywall(options), handler)`,
    program: (line) => `import { Router, type RouterMiddleware } from '@koa/router'
import { paymentOf, paywall } from '@boltyard/sdk/koa'
const router = new Router()
${OPTIONS}
const handler: RouterMiddleware = (ctx) => { ctx.body = paymentOf(ctx)?.amountSat }
${line}
router.get('/words', paywall({ nodeId: 'node_1', amountSat: (ctx) => ctx.path.length }), handler)
${WRONG}`,
  },
  {
    name: 'Elysia',
    page: 'docs/paywall.md',
    line: `app.get('/joke', handler, paywall(options))`,
    program: (line) => `import { Elysia } from 'elysia'
import { paymentOf, paywall } from '@boltyard/sdk/elysia'
const app = new Elysia()
${OPTIONS}
const handler = ({ request }: { request: Request }) => paymentOf(request)?.amountSat
${line}
app.post('/words', ({ body }) => body, { ...paywall({ nodeId: 'node_1', amountSat: ({ path }) => path.length }), detail: {} })
${WRONG}`,
  },
  {
    name: 'NestJS',
    page: 'docs/paywall.md',
    line: '@UseGuards(paywall(options))',
    program: (line) => `import { UseGuards } from '@nestjs/common'
import { paywall } from '@boltyard/sdk/nest'
${OPTIONS}
const decorate: MethodDecorator & ClassDecorator = ${line.slice(1)}
void decorate
${WRONG}`,
  },
  {
    name: 'node:http',
    page: 'docs/paywall.md',
    line: `charge(request, response, () => response.end('…'))`,
    program: (line) => `import { createServer } from 'node:http'
import { paywall } from '@boltyard/sdk/express'
${OPTIONS}
const charge = paywall(options)
createServer((request, response) => {
  void ${line}
})
${WRONG}`,
  },
  {
    name: 'MCP',
    page: 'docs/paywall.md',
    line: `server.registerTool('joke', {…}, chargeForTool({ tool: 'joke', ...options }, handler))`,
    program: (line) => `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { chargeForTool } from '@boltyard/sdk/mcp'
${OPTIONS}
const server = new McpServer({ name: 'jokes', version: '1' })
const handler = async () => ({ content: [{ type: 'text' as const, text: '…' }] })
${line.replace('{…}', "{ description: 'A joke' }")}
// @ts-expect-error
chargeForTool({ tool: 'joke', nodeId: 'node_1', amountSat: 'ten' }, handler)`,
  },
  {
    name: 'MCP resources',
    page: 'docs/paywall.md',
    line: `server.registerResource('story', 'stories://1', {…}, chargeForResource(options, handler))`,
    program: (line) => `import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import { chargeForResource } from '@boltyard/sdk/mcp'
${OPTIONS}
const server = new McpServer({ name: 'stories', version: '1' })
const handler = async (uri: URL) => ({ contents: [{ uri: uri.href, text: '…' }] })
${line.replace('{…}', '{}')}
server.registerResource('poem', new ResourceTemplate('poems://{id}', { list: undefined }), {}, chargeForResource(
  { ...options, amountSat: (uri) => uri.href.length },
  async (uri: URL, { id }: Record<string, string | string[]>) => ({ contents: [{ uri: uri.href, text: String(id) }] }),
))
// @ts-expect-error
chargeForResource({ nodeId: 'node_1', amountSat: 'ten' }, handler)`,
  },
  {
    name: 'MCP prompts',
    page: 'docs/paywall.md',
    line: `server.registerPrompt('review', {…}, chargeForPrompt({ prompt: 'review', ...options }, handler))`,
    program: (line) => `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { chargeForPrompt } from '@boltyard/sdk/mcp'
${OPTIONS}
const server = new McpServer({ name: 'reviews', version: '1' })
const handler = async ({ code }: { code: string }) => ({
  messages: [{ role: 'user' as const, content: { type: 'text' as const, text: code } }],
})
${line.replace('{…}', '{ argsSchema: { code: z.string() } }')}
chargeForPrompt({ prompt: 'review', ...options, amountSat: ({ code }) => code.length }, handler)
// @ts-expect-error
chargeForPrompt({ nodeId: 'node_1', amountSat: 10 }, handler)`,
  },
  {
    name: 'Fastify',
    page: 'docs/paywall.md',
    line: `app.get('/joke', { onRequest: paywall(options) }, handler)`,
    program: (line) => `${FASTIFY}
${line}
${WRONG}
app.get('/paid', { preHandler: paywall({ nodeId: 'node_1', amountSat: (request) => request.url.length }) }, async (request) => ({
  paid: paymentOf(request)?.amountSat,
}))`,
  },
  {
    name: 'Hono',
    page: 'docs/paywall.md',
    line: `app.get('/joke', paywall(options), handler)`,
    program: (line) => `${HONO}
${line}
${WRONG}
app.get('/articles/:id', paywall({ nodeId: 'node_1', amountSat: (c) => c.req.url.length }), (c) => {
  const id: string = c.req.param('id')
  return c.json({ id, paid: paymentOf(c)?.amountSat })
})`,
  },
  {
    name: 'Next',
    page: 'docs/paywall.md',
    line: `export const GET = paywall({ ...options, route: '/api/joke' }, handler)`,
    program: (line) => `import { paywall } from '@boltyard/sdk/next'
${OPTIONS}
const handler = () => Response.json({ joke: '…' })
${line}
${WRONG}
export const POST = paywall(options, async (request: Request, { params }: { params: Promise<{ id: string }> }) =>
  Response.json({ id: (await params).id, url: request.url }))`,
  },
  {
    name: 'Request → Response',
    page: 'docs/paywall.md',
    line: `paywall(options, handler)`,
    program: (line) => `import { paywall } from '@boltyard/sdk/paywall'
${OPTIONS}
const handler = () => new Response('…')
export default { fetch: ${line} }
${WRONG}`,
  },
  {
    name: 'Express, discovery on the page of the paywall',
    page: 'docs/paywall.md',
    line: `app.use(discovery({ title: 'Jokes', routes: { 'GET /joke': charge } }))`,
    program: (line) => `${EXPRESS}
import { discovery } from '@boltyard/sdk/express'
const charge = paywall(options)
${line}
// @ts-expect-error
discovery({ title: 'Jokes', routes: { 'GET /joke': { amountSat: 'ten' } } })`,
  },
  {
    name: 'Express, discovery',
    page: 'docs/guides/be-found.md',
    line: `const joke = paywall({ nodeId: 'node_…', amountSat: 25, description: 'A joke' })
app.use(discovery({ title: 'Jokes', routes: { 'GET /joke': joke } }))
app.get('/joke', joke, handler)`,
    program: (line) => `${EXPRESS}\nimport { discovery } from '@boltyard/sdk/express'\n${line}`,
  },
  {
    name: 'Express, discovery with a document',
    page: 'docs/guides/be-found.md',
    line: `import { readFileSync } from 'node:fs'

const openapi = JSON.parse(readFileSync('openapi.json', 'utf8'))
app.use(discovery({ title: 'Jokes', openapi, routes: { 'GET /joke': joke } }))`,
    program: (line) => `${EXPRESS}\nimport { discovery } from '@boltyard/sdk/express'\nconst joke = paywall(options)\n${line}`,
  },
  ...DISCOVERY,
  {
    name: 'following events',
    page: 'sdk/README.md',
    line: `for await (const event of boltyard.events({ after: await loadCursor(), types: 'payment.*' })) {
  await process(event)
  await saveCursor(event.cursor)
}`,
    program: (line) => `import { Boltyard } from '@boltyard/sdk'
const boltyard = new Boltyard()
const loadCursor = async (): Promise<string | undefined> => undefined
const saveCursor = async (cursor: string) => cursor
const process = async (event: { id: string; type: string; data: Record<string, unknown> }) => event.data.amountSat
${line}
// @ts-expect-error
boltyard.events({ after: 7 })`,
  },
  {
    name: 'creating a webhook',
    page: 'sdk/README.md',
    line: `const { id, secret } = await boltyard.webhooks.create({ url: 'https://shop.example/hook', types: ['payment.*'] })
await boltyard.webhooks.test(id) // sends a sample, and returns what your server responded`,
    program: (line) => `import { Boltyard, type Delivery, type Webhook } from '@boltyard/sdk'
const boltyard = new Boltyard()
${line}
export const stored: string = secret
export const webhook: Webhook = await boltyard.webhooks.update(id, { enabled: false })
export const sent: Delivery = await boltyard.webhooks.redeliver(id, 'dlv_1')
// @ts-expect-error
boltyard.webhooks.create({ url: 'https://shop.example/hook', types: ['payment.unknown'] })`,
  },
  {
    name: 'a webhook in Express',
    page: 'sdk/README.md',
    line: `app.post('/hook', express.raw({ type: 'application/json' }), async (request, response) => {
  const event = await verifyWebhook(request.body, request.headers, process.env.WEBHOOK_SECRET ?? '')
  response.sendStatus(204)
})`,
    program: (line) => `import express from 'express'
import { verifyWebhook } from '@boltyard/sdk/webhooks'
const app = express()
${line}
// @ts-expect-error
verifyWebhook({ parsed: true }, new Headers(), 'whsec_…')`,
  },
  {
    name: 'buying',
    page: 'sdk/README.md',
    line: `const pay = buyer({ wallet: { endpointUrl, password }, maxSatPerRequest: 100, maxSatPerDay: 5_000 })
const response = await pay.fetch('https://shop.example/weather')`,
    program: (line) => `import { buyer } from '@boltyard/sdk/buy'
const [endpointUrl, password] = ['https://boltyard.example/n/node_1', '…']
${line}
export const status: number = response.status
// @ts-expect-error
buyer({ wallet: { endpointUrl, password }, maxSatPerRequest: 100 })`,
  },
  {
    name: 'buying, the guide',
    page: 'docs/guides/buy-in-code.md',
    line: `const pay = buyer({
  wallet: { endpointUrl: 'https://boltyard.example/n/node_…', password: process.env.NODE_PASSWORD ?? '' },
  maxSatPerRequest: 100,
  maxSatPerDay: 5_000,
})

const response = await pay.fetch('https://shop.example/weather')
console.log(await response.text())`,
    program: (line) => `import { buyer, type PurchaseInfo, purchaseOf } from '@boltyard/sdk/buy'
${line}
export const paid: PurchaseInfo | undefined = purchaseOf(response)
// @ts-expect-error
buyer({ wallet: { url: 'http://127.0.0.1:9740' }, maxSatPerRequest: 100, maxSatPerDay: 5_000 })`,
  },
  {
    name: 'buying with a wallet of your own',
    page: 'docs/guides/buy-in-code.md',
    line: `const pay = buyer({
  wallet: {
    pay: async (invoice) => (await myWallet.payInvoice(invoice)).preimage,
    lookUp: async (paymentHash) => myWallet.preimageOf(paymentHash), // or 'failed', or undefined if it does not know
    network: 'mainnet', // invoices of other networks are refused
  },
  maxSatPerRequest: 100,
  maxSatPerDay: 5_000,
})`,
    program: (line) => `import { buyer } from '@boltyard/sdk/buy'
const myWallet = {
  payInvoice: async (invoice: string) => ({ preimage: invoice }),
  preimageOf: async (paymentHash: string): Promise<string | undefined> => paymentHash,
}
${line}
void pay
// @ts-expect-error
buyer({ wallet: async () => 7, maxSatPerRequest: 100, maxSatPerDay: 5_000 })`,
  },
  {
    name: 'buying once for all time',
    page: 'docs/guides/buy-in-code.md',
    line: `const response = await pay.fetch('https://shop.example/report', { method: 'POST', body: question, purchaseKey: 'order-17' })`,
    program: (line) => `import { buyer } from '@boltyard/sdk/buy'
const pay = buyer({ wallet: async () => '00', maxSatPerRequest: 1, maxSatPerDay: 1, store: '/tmp/purchases' })
const question = 'Where?'
${line}
void response
// @ts-expect-error
pay.fetch('https://shop.example/report', { purchaseKey: 17 })`,
  },
  {
    name: 'unfinished purchases',
    page: 'docs/guides/buy-in-code.md',
    line: `for (const { paymentHash, url, amountSat, state } of await pay.unfinished()) {
  console.log(\`\${state}: \${amountSat} sat for \${url} (\${paymentHash})\`)
}
await pay.complete(paymentHash, preimage) // the wallet cannot be asked, but you know that it paid
await pay.forget(paymentHash) // give it up: the next call may pay again`,
    program: (line) => `import { buyer, memoryStore } from '@boltyard/sdk/buy'
const pay = buyer({ wallet: async () => '00', maxSatPerRequest: 1, maxSatPerDay: 1, store: memoryStore() })
const [paymentHash, preimage] = ['00', '11']
${line}
// @ts-expect-error
pay.forget()`,
  },
]
