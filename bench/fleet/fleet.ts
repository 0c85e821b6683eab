import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDataDir } from '../../server/src/platform/data-dir.ts'
import { startEmbedded } from '../../server/src/platform/embedded-postgres.ts'
import { lookUpUser } from '../../server/src/platform/linux.ts'
import { masterKeyOf } from '../../server/src/platform/secrets.ts'
import { openStore } from '../../server/src/store/db.ts'
import { imageOf } from '../../testing/kubernetes/cluster.ts'
import { startPlane, whyNoPlane } from '../../testing/kubernetes/plane.ts'
import { agent, Service } from '../../testing/service.ts'
import type { Measure } from '../measure.ts'
import { FleetCluster } from './cluster.ts'
import { type Fleet, type FleetNode, insertNodes, startResponder, VERSION } from './nodes.ts'
import { FleetBench } from './rows.ts'

const SMALL = 1_000

/** Runs the service for a fleet on a real API server and a real PostgreSQL. The nodes themselves are simulated. */
export async function benchFleet(count: number): Promise<Measure[]> {
  const reason = whyNoPlane()
  if (reason !== undefined) throw new Error(reason)
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-fleet-'))
  chmodSync(directory, 0o711)
  openDataDir(join(directory, 'store'), 'shared')
  const user = process.getuid?.() === 0 ? lookUpUser('postgres', 'nobody') : undefined
  const plane = startPlane('127.0.0.1', { hasControllers: false })
  const postgres = await startEmbedded(join(directory, 'store'), user, () => undefined)
  const sql = openStore(postgres.connection, 2)
  const responder = await startResponder()
  const cluster = new FleetCluster(plane.kubeconfig, imageOf(VERSION))
  mkdirSync(join(directory, 'service'))
  const service = new Service(join(directory, 'service'))
  try {
    const masterKey = randomBytes(32)
    const { host, user: name, password, database } = postgres.connection
    const env = {
      ...(await cluster.open(directory)),
      DATABASE_URL: `postgres:///${database}?${new URLSearchParams({ host, user: name, password })}`,
      MASTER_KEY: masterKey.toString('base64'),
      OPERATOR_TOKEN: randomBytes(16).toString('hex'),
      MAX_NODES: '100000',
      NODE_VERSIONS: `${VERSION}=${imageOf(VERSION)}`,
      NODE_CALLBACK_URL: 'http://127.0.0.1:1',
      SANDBOX_HUB: '127.0.0.1:1',
      SANDBOX_HUB_NODE_TOKEN: 'unused-by-the-bench',
      SANDBOX_HUB_CONTROL_TOKEN: 'unused-by-the-bench',
      // No such node exists: the fleet is charged, but has no treasury, whose node could not start.
      TREASURY_NODE_ID: `node_${'0'.repeat(20)}`,
      // For a profile of the service alone, such as --cpu-prof.
      ...(process.env.FLEET_NODE_OPTIONS ? { NODE_OPTIONS: process.env.FLEET_NODE_OPTIONS } : {}),
    }
    await service.start(env)
    const accountId = await openAccount(service, env.OPERATOR_TOKEN)
    await service.stop()
    const [row] = await sql<{ value: Buffer }[]>`SELECT value FROM settings WHERE name = 'installation'`
    const installation = row?.value.toString('utf8') ?? ''
    const fleet: Fleet = { sql, master: masterKeyOf(masterKey), installation, firstAccountId: accountId }
    const bench = new FleetBench({ sql, service, cluster, env, store: join(directory, 'store') })
    const nodes: FleetNode[] = []
    let small: number | undefined
    for (const size of count > SMALL ? [SMALL, count] : [count]) {
      const added = await insertNodes(fleet, nodes.length, size)
      await cluster.add(installation, added)
      nodes.push(...added)
      console.error(`fleet: ${size} nodes`)
      const perNodeMs = await bench.passes(size, size === count)
      if (size === count) bench.compare(perNodeMs, small)
      else await service.stop()
      small = perNodeMs
    }
    await bench.steady()
    await bench.lists(Math.min(count, 1_000))
    await cluster.startKubelet(installation, nodes)
    // A node of the account whose key the bench has.
    await bench.change(nodes[0]?.id ?? '')
    return bench.measures
  } finally {
    await service.stop()
    await sql.end()
    await postgres.stop()
    responder.stop()
    await cluster.close()
    plane.stop()
    agent.destroy()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The account that the bench has a key for. */
async function openAccount(service: Service, operatorToken: string): Promise<string> {
  const { body: account } = await service.call('POST', '/operator/v1/accounts', { name: 'bench' }, operatorToken)
  const wish = { name: 'bench', scopes: ['nodes:write'] }
  const { body } = await service.call('POST', `/operator/v1/accounts/${account.id}/keys`, wish, operatorToken)
  service.key = body.key
  return account.id
}
