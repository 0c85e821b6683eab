import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { command, idOf } from '../nodes/moving/moving.ts'
import { emptyDatabase, run } from '../support/commands.ts'
import { Yard } from '../support/crash.ts'
import { charge, credentialOf, newMerchant, pay, redeem, untilSettled } from '../support/gateway.ts'
import { hasNoPlane, kubeconfigFor, openCluster, replicaEnv } from '../support/kubernetes.ts'
import { Owner } from '../support/nodes.ts'
import { storeEnv, temporaryDirectory } from '../support/server.ts'

const FUNDED_SAT = 5_000
const SOLD_SAT = 21

describe.skipIf(hasNoPlane())('from one machine to Kubernetes', () => {
  let cluster: TestCluster
  beforeAll(async () => {
    cluster = await openCluster()
  })
  afterAll(() => cluster?.close())

  test('C72, C90: accounts, keys, payments and nodes with their money move, as docs/operations.md says', async () => {
    const machine = await new Yard().start()
    const merchants = await Promise.all(
      ['Kiosk', 'Library'].map(async (name) => {
        const merchant = await newMerchant(machine)
        const created = await merchant.createReady({ name })
        await machine.fund(created.node.id, FUNDED_SAT)
        const payment = await charge(merchant, created, { amountSat: SOLD_SAT })
        const credential = credentialOf(payment, await pay(machine, payment))
        await untilSettled(merchant, payment)
        return { merchant, name, created, payment, credential }
      }),
    )
    const wallets = join(temporaryDirectory(), 'wallets')
    mkdirSync(wallets)
    const { nodes } = (await machine.operator('GET', '/nodes?state=live')).json() as { nodes: { id: string }[] }
    expect(nodes).toHaveLength(merchants.length)
    for (const { id } of nodes) expect((await command(machine, ['release', id, join(wallets, id)])).code).toBe(0)
    await machine.stop()
    const file = join(temporaryDirectory(), 'last.backup')
    expect((await command(machine, ['backup', file])).code).toBe(0)

    const kubernetes = replicaEnv(cluster, await kubeconfigFor(cluster, 'boltyard'))
    const env = { ...kubernetes, ...storeEnv(await emptyDatabase(), machine.masterKey) }
    expect(run(['restore', file], env)).toMatchObject({ code: 0 })
    const yard = await new Yard({ env }).start()
    for (const { merchant, name, created, payment, credential } of merchants) {
      const id = idOf(await command(yard, ['adopt', join(wallets, created.node.id)]))
      // With a key of the old installation.
      const owner = new Owner(yard, merchant.key)
      expect(await owner.want(200, 'GET', `/nodes/${id}`)).toMatchObject({ name, status: 'stopped' })
      await owner.want(200, 'POST', `/nodes/${id}/start`)
      const { balanceSat } = await yard.node(id, created.credentials.password, 'GET', '/getbalance')
      expect(balanceSat).toBe(FUNDED_SAT + SOLD_SAT)
      expect((await redeem(owner, payment.id, credential)).status).toBe(200)
      const sold = await charge(owner, { node: { ...created.node, id } })
      expect((await redeem(owner, sold.id, credentialOf(sold, await pay(yard, sold)))).status).toBe(200)
    }
  })
})
