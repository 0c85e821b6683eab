import { Agent, createServer, request as send } from 'node:http'
import { createProxy } from '@boltyard/sdk/proxy'

/**
 * One of three programs, each in its own process, so that its CPU time can be measured. It is configured by environment variables. In
 * JavaScript, with the built package, for the reason given in paywall-shop.mjs.
 */
const { ROLE, UPSTREAM_PORT = '', NODE_ID = '' } = process.env
const port = ROLE === 'proxy' ? await startProxy() : await listen(ROLE === 'bare' ? bareProxy() : upstream())
process.send?.(port)

/** Responds like the shop in paywall-shop.mjs, without a framework. */
function upstream() {
  const body = JSON.stringify({ joke: 'bench' })
  return createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
}

/** The least that a proxy in Node can do: every header as it is, streams both ways, kept connections. */
function bareProxy() {
  const agent = new Agent({ keepAlive: true, timeout: 4_000, scheduling: 'lifo' })
  return createServer((request, response) => {
    const { method, url: path, headers } = request
    const outgoing = send({ host: '127.0.0.1', port: UPSTREAM_PORT, agent, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    request.pipe(outgoing)
  })
}

async function startProxy() {
  const proxy = createProxy({
    listen: '127.0.0.1:0',
    upstream: `http://127.0.0.1:${UPSTREAM_PORT}`,
    node: NODE_ID,
    protocols: ['l402'],
    limits: { openChallengesPerAddress: 0 },
    routes: [
      { match: 'GET /healthz', free: true },
      { match: 'GET /free', free: true },
      { match: 'GET /articles/:id', amountSat: 100 },
    ],
  })
  return (await proxy.listen()).port
}

async function listen(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server.address().port
}
