import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

/** Code like that in docs/paywall.md compiles with the strict checks of this repository. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')

function compile(source: string): string {
  // Not inside a room, because other tests read the rooms at the same time.
  const directory = mkdtempSync(join(root, '.types-'))
  try {
    writeFileSync(join(directory, 'shop.ts'), source)
    const config = { extends: '../tsconfig.base.json', compilerOptions: { noUnusedLocals: false }, files: ['shop.ts'] }
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config))
    execFileSync(process.execPath, [tsc, '-p', directory], { encoding: 'utf8', stdio: 'pipe' })
    return ''
  } catch (error) {
    return String((error as { stdout?: string }).stdout ?? error)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Fails to compile unless both are the same type. */
const SAME = `
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <T extends true>(): T | undefined => undefined
`

test('D4: the Fastify line compiles, and a price function gets the typed request', () => {
  const source = `
import fastify, { type FastifyRequest } from 'fastify'
import { paywall } from '../sdk/src/paywall/adapters/fastify.ts'
const [app, options] = [fastify(), { nodeId: 'node_a', amountSat: 10 }]
app.get('/joke', { onRequest: paywall(options) }, async () => 'joke')
app.get('/joke', { preHandler: paywall(options) }, async () => 'joke')
app.get('/joke', { onRequest: [paywall(options)] }, async () => 'joke')
app.addHook('onRequest', paywall(options))
app.get('/a/:id', { onRequest: paywall({ ...options, amountSat: (request) => request.url.length }) }, async () => 'joke')
app.get('/b/:id', { onRequest: paywall({ ...options, amountSat: (request: FastifyRequest) => request.id.length }) }, async () => 'joke')
app.get<{ Params: { id: string } }>('/c/:id', { onRequest: paywall(options) }, async (request) => request.params.id.length)
await paywall(options).ready()
`
  expect(compile(source)).toBe('')
})

test('D15: behind the Express paywall, params and body have the types they have without it', () => {
  const source = `
import express from 'express'
import { paymentOf, paywall } from '../sdk/src/paywall/adapters/express.ts'
${SAME}
const [app, options] = [express(), { nodeId: 'node_a', amountSat: 10 }]
app.get('/a/:id', paywall(options), (request, response) => {
  same<Same<typeof request.params.id, string>>()
  same<Same<typeof request.body, any>>()
  paymentOf(request)?.release()
  response.json({})
})
app.use('/static', paywall(options), express.static('.'))
app.get('/b/:n', paywall({ ...options, amountSat: (request) => Number(request.params.n) }), (_request, response) => void response.end())
app.get('/c/:n', paywall({ ...options, amountSat: (request: express.Request) => request.ips.length }), (request) => request.params.n.length)
await paywall(options).ready()
`
  expect(compile(source)).toBe('')
})

test('node:http, Hono, Next and MCP compile as they are written', () => {
  const source = `
import { createServer } from 'node:http'
import { Hono } from 'hono'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { paywall as charge } from '../sdk/src/paywall/adapters/express.ts'
import { paywall as honoPaywall } from '../sdk/src/paywall/adapters/hono.ts'
import { chargeForTool } from '../sdk/src/paywall/adapters/mcp.ts'
import { paywall as nextPaywall } from '../sdk/src/paywall/adapters/next.ts'
const options = { nodeId: 'node_a', amountSat: 10 }
const charged = charge(options)
createServer((request, response) => void charged(request, response, () => response.end('joke')))
const app = new Hono<{ Variables: { user: string } }>()
app.get('/joke/:id', honoPaywall({ ...options, amountSat: (c) => c.req.path.length }), (c) => c.text(c.req.param('id') + c.get('user')))
export const GET = nextPaywall({ ...options, route: '/api/joke' }, (request: Request, context: { params: { id: string } }) => new Response(context.params.id + request.url))
new McpServer({ name: 'a', version: '1' }).registerTool('joke', { inputSchema: { topic: z.string() } }, chargeForTool({ tool: 'joke', ...options, amountSat: ({ topic }) => topic.length }, async ({ topic }) => ({ content: [{ type: 'text', text: topic }] })))
`
  expect(compile(source)).toBe('')
})

test('code that does not compile is reported', () => {
  expect(
    compile("import { paywall } from '../sdk/src/paywall/adapters/fastify.ts'\npaywall({ nodeId: 1, amountSat: 10 })"),
  ).toMatch(/'number' is not assignable to type 'string'/)
})
