import { beforeAll, expect, test } from 'vitest'
import { offerIn } from '../../../protocol/src/offers.ts'
import { type CreatedNode, signUp, type Visitor } from '../support/dashboard.ts'
import { eventually, type Server, startServer } from '../support/server.ts'

let server: Server
let ann: Visitor
let shop: CreatedNode
beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  ann = await signUp(server)
  shop = await ann.createReady()
})

const ofShop = (path: string) => ann.want(200, 'GET', `/nodes/${shop.node.id}${path}`)

test('dashboard: without a channel there is an offer but no Lightning address, and the response says why', async () => {
  expect(await ofShop('/receiving')).toEqual({
    offer: expect.stringMatching(/^lno1/),
    lightningAddress: null,
    needsChannel: true,
  })
})

test('dashboard: the last known balance stays, with its time, when the node no longer answers', async () => {
  await ann.want(200, 'POST', `/sandbox/nodes/${shop.node.id}/fund`, { json: { amountSat: 500_000 } })
  expect((await ofShop('')).isBalanceOutdated).toBe(true)
  const { balanceSat, inboundSat } = await ofShop('/live')
  expect(balanceSat).toBeGreaterThan(0)
  expect(inboundSat).toBeGreaterThan(0)
  const known = await ofShop('')
  expect(known).toMatchObject({ balanceSat, isBalanceOutdated: false, version: expect.any(String) })
  expect(Math.abs(known.startedAt - Date.now() / 1000)).toBeLessThan(600)
  await ann.want(200, 'POST', `/nodes/${shop.node.id}/stop`, { json: {} })
  const [listed] = (await ann.want(200, 'GET', '/nodes')).nodes
  expect(listed).toMatchObject({ balanceSat, startedAt: null })
  expect(listed.balanceAt).toBeGreaterThanOrEqual(known.balanceAt)
  await ann.want(200, 'POST', `/nodes/${shop.node.id}/start`, { json: {} })
})

test('dashboard: nobody has to open a node’s page for its balance to be known', async () => {
  const other = await ann.createReady()
  await eventually(
    async () => (await ann.want(200, 'GET', `/nodes/${other.node.id}`)).balanceSat === 0,
    'the reconciler to record the balance',
  )
})

test('dashboard: with a channel there is a Lightning address', async () => {
  const { lightningAddress, needsChannel } = await ofShop('/receiving')
  expect([lightningAddress, needsChannel]).toEqual([expect.stringMatching(/^[^@₿]+@[a-z.]+$/), false])
})

test('dashboard: a payment of the node names its gateway payment, if it has one', async () => {
  const json = { nodeId: shop.node.id, amountSat: 21, description: 'Tea', protocol: 'l402' }
  const { id, challenge } = await ann.want(201, 'POST', '/payments', { json })
  await ann.want(200, 'POST', '/sandbox/pay', { json: { invoice: offerIn(challenge).invoiceText } })
  await ann.want(201, 'POST', `/nodes/${shop.node.id}/invoices`, { json: { amountSat: 22, description: 'By hand' } })
  const { payments } = await ofShop('/payments')
  const named = payments.map(({ amountSat, gatewayPaymentId }: Record<string, unknown>) => [amountSat, gatewayPaymentId])
  expect(named).toContainEqual([21, id])
  expect(named).toContainEqual([22, null])
})

test('security: the log has the node’s output and none of its secrets, for its owner only', async () => {
  const { lines } = await ofShop('/log')
  expect(lines.length).toBeGreaterThan(0)
  const text = lines.join('\n')
  for (const secret of Object.values(shop.credentials)) expect(text).not.toContain(secret)
  const bob = await signUp(server)
  for (const path of ['log', 'receiving'])
    expect((await bob.refusal('GET', `/nodes/${shop.node.id}/${path}`)).slice(0, 2)).toEqual([404, 'node_not_found'])
})
