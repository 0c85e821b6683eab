import { join } from 'node:path'
import { expect } from 'vitest'
import type { TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { PATHS } from '../../src/runtimes/kubernetes/objects.ts'
import type { StatefulSet } from '../../src/runtimes/kubernetes/types.ts'
import type { Database } from '../../src/store/db.ts'
import { command } from '../nodes/moving/moving.ts'
import { type Created, Yard } from '../support/crash.ts'
import { kubeconfigFor, replicaEnv } from '../support/kubernetes.ts'
import { type Key, temporaryDirectory } from '../support/server.ts'

export const FUNDED_SAT = 5_000

export type MovingYards = { machine: Yard; yard: Yard; key: Key; sql: Database }

/** Two installations between which wallets move: `machine` runs its nodes as processes, `yard` in the cluster. */
export async function openYards(cluster: TestCluster): Promise<MovingYards> {
  const env = replicaEnv(cluster, await kubeconfigFor(cluster, 'boltyard'))
  const [machine, yard] = await Promise.all([new Yard().start(), new Yard({ env }).start()])
  return { machine, yard, key: await yard.newKey(['nodes:write']), sql: yard.sql() }
}

export const newPath = (): string => join(temporaryDirectory(), 'released')

export const refusal = (says: string, code = 78) => ({ code, signal: null, stderr: expect.stringContaining(says) })

export async function funded(at: Yard): Promise<Created> {
  const created = await at.createReady()
  await at.fund(created.node.id, FUNDED_SAT)
  return created
}

/** A funded wallet in a directory that a release on a machine has written. */
export async function walletOn(machine: Yard): Promise<{ created: Created; directory: string }> {
  const created = await funded(machine)
  const directory = newPath()
  expect((await command(machine, ['release', created.node.id, directory])).code).toBe(0)
  return { created, directory }
}

export const statefulSetOf = (cluster: TestCluster, name: string) =>
  cluster.admin.get<StatefulSet>(`${PATHS.statefulSets(cluster.namespace)}/${name}`)
