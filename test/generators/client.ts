import { setTimeout as pause } from 'node:timers/promises'
import createClient from 'openapi-fetch'
import type { paths } from './dist/schema.js'

/** What an integrator would write with the types that openapi-typescript generates. Prints its results as JSON. */

const { BASE_URL: baseUrl = '', API_KEY: apiKey = '' } = process.env
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${apiKey}` } })

const created = await client.POST('/v1/nodes', {
  params: { header: { 'Idempotency-Key': 'typescript' } },
  body: { name: 'TypeScript' },
})
if (!created.data) throw new Error(created.error.error.message)
let { node } = created.data
while (node.status === 'provisioning') {
  await pause(200)
  const { data, error } = await client.GET('/v1/nodes/{nodeId}', { params: { path: { nodeId: node.id } } })
  if (!data) throw new Error(error.error.message)
  node = data
}
const body = { nodeId: node.id, amountSat: 21, description: 'One joke', protocol: 'mpp' as const }
const payment = await client.POST('/v1/gateway/payments', { body })
if (!payment.data) throw new Error(payment.error.error.message)
const list = await client.GET('/v1/gateway/payments', { params: { query: { limit: 1 } } })
const missing = await client.GET('/v1/nodes/{nodeId}', { params: { path: { nodeId: 'node_missing' } } })

process.stdout.write(
  JSON.stringify({
    node: { name: node.name, status: node.status },
    payment: { protocol: payment.data.protocol, status: payment.data.status, challenge: payment.data.challenge },
    listed: list.data?.payments.map(({ id, amountSat }) => ({ isIt: id === payment.data.id, amountSat })),
    error: { status: missing.response.status, code: missing.error?.error.code, message: missing.error?.error.message },
  }),
)
