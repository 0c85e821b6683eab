import { randomUUID } from 'node:crypto'
import { lightningIdOf } from '../../src/nodes/lightning-id.ts'
import { newMaterial } from '../../src/nodes/material.ts'
import type { History } from '../../src/nodes/node.ts'
import type { NodeMaterial, NodeSpec } from '../../src/nodes/runtime.ts'

export const NEVER_STARTED: History = {
  wantedSinceMs: 0,
  exitsMs: [],
  startedAtMs: null,
  run: 0,
  version: null,
  reached: false,
  previousVersion: null,
}

/** Nodes that exist only in a runtime, not in a store, with their secrets. */
export class Specs {
  readonly #materials = new Map<string, NodeMaterial>()

  readonly materialOf = (nodeId: string): NodeMaterial => {
    const material = this.#materials.get(nodeId)
    if (!material) throw new Error(`no node ${nodeId}`)
    return material
  }

  /** A node that should run version 0.8.0 and was never started. */
  add(): NodeSpec {
    const id = `node_${randomUUID().replaceAll('-', '').slice(0, 20)}`
    const material = newMaterial()
    this.#materials.set(id, material)
    return {
      id,
      lightningId: lightningIdOf(material.seed, 'regtest'),
      autoLiquidity: 'off',
      desired: { state: 'running', version: '0.8.0', run: 1 },
      hasOperation: false,
      history: NEVER_STARTED,
      epoch: 1,
      nowMs: Date.now(),
    }
  }
}

export const wanting = (node: NodeSpec, desired: Partial<NodeSpec['desired']>): NodeSpec => ({
  ...node,
  desired: { ...node.desired, ...desired },
})

/** The node after the reconciler has recorded its start. */
export function started(node: NodeSpec, before: Partial<History> = {}): NodeSpec {
  const { run, version } = node.desired
  return { ...node, history: { ...NEVER_STARTED, startedAtMs: Date.now(), run, version, ...before } }
}
