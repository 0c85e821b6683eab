import { newId } from '../platform/ids.ts'
import type { MasterKey } from '../platform/secrets.ts'
import type { Sql } from '../store/db.ts'
import { insertNode, type NewNode, takeNodeNumber } from '../store/nodes/creation.ts'
import type { NodeRow } from '../store/nodes/nodes.ts'
import { lightningIdOf, type Network } from './lightning-id.ts'
import { newMaterial, sealSecrets } from './material.ts'
import { initialState } from './node.ts'

export type CreateNodeParams = {
  accountId: string
  actor: string
  /** Undefined: "Node" followed by its number. */
  name?: string | undefined
  autoLiquidity?: string
  accessMode?: 'limited' | 'full'
}
export type Credentials = { seed: string; password: string; restrictedPassword: string }
export type PreparedNode = { node: Omit<NewNode, 'name'> & { name: string | undefined }; credentials: Credentials }

export type CreateNodeDeps = { master: MasterKey; network: Network; host: string; versions: string[] }

/** Everything about a new node that does not need the store. Key derivation is too slow for a transaction to wait for. */
export function prepareNode({ master, network, host, versions }: CreateNodeDeps, params: CreateNodeParams): PreparedNode {
  const { accountId, actor, name, autoLiquidity = '2m', accessMode = 'limited' } = params
  const id = newId('node')
  const material = newMaterial()
  const { seed, password, restrictedPassword } = material
  const lightningId = lightningIdOf(seed, network)
  const secrets = sealSecrets(master, accountId, id, material, accessMode)
  const state = initialState(versions.at(-1) ?? '')
  return {
    node: { id, accountId, host, lightningId, name, autoLiquidity, accessMode, ...state, secrets, actor },
    credentials: { seed, password, restrictedPassword },
  }
}

/** Runs in a transaction of the caller, who decides whether the node is allowed. The reconciler starts the node after the commit. */
export async function insertPrepared(sql: Sql, { node }: PreparedNode): Promise<NodeRow> {
  const number = await takeNodeNumber(sql, node.accountId)
  return insertNode(sql, { ...node, name: node.name ?? `Node ${number}` })
}
