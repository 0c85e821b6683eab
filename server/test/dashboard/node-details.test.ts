import { appendFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
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

test('dashboard: the balance of a node becomes known without anyone opening its page', async () => {
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

test('dashboard: what a node receives through its own invoices counts as received, and gateway payments count once', async () => {
  const till = await ann.createReady()
  const { id: nodeId } = till.node
  await ann.want(200, 'POST', `/sandbox/nodes/${nodeId}/fund`, { json: { amountSat: 500_000 } })
  const received = async (query: string): Promise<number> => {
    const { quarterHours } = await ann.want(200, 'GET', `/received?days=1${query}`)
    return quarterHours.reduce((sum: number, { sat }: { sat: number }) => sum + sat, 0)
  }
  const ofTill = () => received(`&nodeId=${nodeId}`)
  const sql = server.sql()
  /** Makes the service read again the whole list of what the node has received. */
  const listAgain = async (): Promise<void> => {
    const isListed = async () => (await ann.want(200, 'GET', `/received?days=1&nodeId=${nodeId}`)).unlistedNodes === 0
    await eventually(isListed, 'the list of the node')
    await sql`UPDATE node_receipt_lists SET next_at = now(), listed_until = NULL, listed_at = NULL WHERE node_id = ${nodeId}`
    expect(await isListed()).toBe(false)
    await eventually(isListed, 'the next list of the node')
  }
  await listAgain()
  const [before, beforeOfAll] = [await ofTill(), await received('')]
  const byHand = await ann.want(201, 'POST', `/nodes/${nodeId}/invoices`, { json: { amountSat: 4_000, description: 'By hand' } })
  await ann.want(200, 'POST', '/sandbox/pay', { json: { invoice: byHand.invoice } })
  const json = { nodeId, amountSat: 300, description: 'Tea', protocol: 'l402' }
  const { challenge } = await ann.want(201, 'POST', '/payments', { json })
  await ann.want(200, 'POST', '/sandbox/pay', { json: { invoice: offerIn(challenge).invoiceText } })
  // The service learns of the gateway payment on its own. It learns that the invoice made by hand was paid when the page asks for
  // that invoice.
  await eventually(async () => (await ofTill()) - before === 300, 'the payment of the gateway')
  expect(await ann.want(200, 'GET', `/nodes/${nodeId}/invoices/${byHand.paymentHash}`)).toMatchObject({ isPaid: true })
  expect([(await ofTill()) - before, (await received('')) - beforeOfAll]).toEqual([4_300, 4_300])
  const unseen = await ann.want(201, 'POST', `/nodes/${nodeId}/invoices`, { json: { amountSat: 50_000, description: 'Unseen' } })
  await ann.want(200, 'POST', '/sandbox/pay', { json: { invoice: unseen.invoice } })
  await listAgain()
  expect([(await ofTill()) - before, (await received('')) - beforeOfAll]).toEqual([54_300, 54_300])
})

test('security: the log has the node’s output and none of its secrets, for its owner only', async () => {
  const secrets = Object.values(shop.credentials)
  const logs = readdirSync(server.dataDir, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.includes(shop.node.id) && path.endsWith('daemon.log'),
  )
  expect([logs.length, secrets.length > 1]).toEqual([1, true])
  // The sandbox daemon logs no secret, but another daemon or version may.
  for (const secret of secrets) appendFileSync(join(server.dataDir, logs[0] ?? ''), `started with ${secret} as before\n`)
  const { lines, isComplete } = await ofShop('/log')
  const text = lines.join('\n')
  expect([isComplete, text.includes('started with')]).toEqual([true, true])
  for (const secret of secrets) expect(text).not.toContain(secret)
  expect(text).not.toContain(server.dataDir)
  const bob = await signUp(server)
  for (const path of ['log', 'receiving'])
    expect((await bob.refusal('GET', `/nodes/${shop.node.id}/${path}`)).slice(0, 2)).toEqual([404, 'node_not_found'])
})

test('security: a line of the log that has lost its beginning is not shown', async () => {
  const [log = ''] = readdirSync(server.dataDir, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.includes(shop.node.id) && path.endsWith('daemon.log'),
  )
  // The line is longer than the part of the log that is read, and has no line break at its end.
  appendFileSync(join(server.dataDir, log), `${Object.values(shop.credentials)[0]}${'x'.repeat(70_000)}`)
  expect(await ofShop('/log')).toEqual({ lines: [], isComplete: false })
})

test('dashboard: the log of a node on another machine is unknown, not empty', async () => {
  await server.sql()`UPDATE nodes SET host = 'elsewhere' WHERE id = ${shop.node.id}`
  expect(await ofShop('/log')).toEqual({ lines: null, isComplete: false })
})
