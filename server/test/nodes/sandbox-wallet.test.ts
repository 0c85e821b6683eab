import { beforeAll, expect, test } from 'vitest'
import { signUp, type Visitor } from '../support/dashboard.ts'
import { invoiceIn } from '../support/gateway.ts'
import { eventually, freePort, type Server, startServer } from '../support/server.ts'

/** The wallet with unlimited play money, on a sandbox that strangers share. */

let server: Server
let ann: Visitor
let eve: Visitor

beforeAll(async () => {
  const port = String(await freePort())
  const origin = `http://pay.example:${port}`
  server = await startServer({
    env: { TRUST_PROXY: '1', PORT: port, PUBLIC_URL: origin, REGISTRATION: 'open', OPERATOR_TOKEN: 'o'.repeat(32) },
  })
  ann = await signUp(server, origin)
  eve = await signUp(server, origin)
})

const payment = async (): Promise<string> => {
  const { node } = await ann.createReady()
  const json = { nodeId: node.id, amountSat: 1000, description: 'report', protocol: 'l402' }
  return invoiceIn((await ann.want(201, 'POST', '/payments', { json })).challenge)
}

test('security 23: an account that paid gets the answer again; another account and the operator get no preimage', async () => {
  const json = { invoice: await payment() }
  const paid = await ann.want(200, 'POST', '/sandbox/pay', { json })
  expect(await ann.want(200, 'POST', '/sandbox/pay', { json })).toEqual(paid)
  for (const answer of [
    await eve.send('POST', '/sandbox/pay', { json }),
    await server.operator('POST', '/sandbox/pay', { json }),
  ]) {
    expect([answer.status, answer.json().error]).toEqual([
      400,
      { code: 'bad_request', message: 'this invoice has already been paid' },
    ])
    expect(answer.text).not.toContain(paid.preimage)
  }
})

test('security 23: it does not buy credit, in any spelling of the invoice; the operator can', async () => {
  const { invoice, paymentHash } = await eventually(
    () => eve.want(201, 'POST', '/credit/top-ups', { json: { amountSat: 10_000 } }),
    'the treasury’s node to be ready',
  )
  const before = (await eve.want(200, 'GET', '/credit')).balanceSat
  for (const written of [invoice, invoice.toUpperCase(), `lightning:${invoice}`, ` ${invoice}`])
    expect((await eve.refusal('POST', '/sandbox/pay', { json: { invoice: written } })).slice(0, 2)).toEqual([400, 'bad_request'])
  const answer = await server.operator('POST', '/sandbox/pay', { json: { invoice } })
  expect(answer.status).toBe(200)
  await eventually(
    async () => (await eve.want(200, 'GET', `/credit/top-ups/${paymentHash}`)).settledAt !== null,
    'the settlement',
  )
  expect((await eve.want(200, 'GET', '/credit')).balanceSat).toBe(before + 10_000)
})
