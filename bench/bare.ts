import type { AddressInfo } from 'node:net'
import fastify from 'fastify'

/** The upper bound for an HTTP server like ours on this machine: it parses the same body, sends as many bytes, and does nothing else. */
const app = fastify({ logger: false })
for (const path of ['/', '/v1/gateway/payments/:id/redeem'])
  app.post(path, async ({ body }) => ({ receipt: (body as { credential: string }).credential.slice(0, 300) }))
await app.listen({ host: '127.0.0.1', port: 0 })
process.send?.((app.server.address() as AddressInfo).port)
