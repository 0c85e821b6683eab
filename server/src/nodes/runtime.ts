import type { NodeRow } from '../store/nodes.ts'
import type { Observed } from './node.ts'

/** All a node needs to be itself; only a runtime opens it, to write the node's files. */
export type NodeMaterial = {
  seed: string
  password: string
  restrictedPassword: string
  webhookSecret: string
  controlToken: string
}

export type Observation = {
  observed: Observed
  /** What the process that is there was started as; also of one that is gone again, when its start was never recorded. */
  process?: { run: number; version: string }
  /** Undefined: not known now, for example because channels are offline. */
  hasFunds?: boolean
}

/** Why a node cannot be started here, in words for its owner; what else goes wrong is for the log. */
export class CannotStart extends Error {}

/** Where a node runs. Every call can be repeated: it is made again whenever nobody knows whether the last one worked. */
export interface Runtime {
  observe(node: NodeRow): Promise<Observation>
  /** Starts the wanted version, as the wanted run. The fence is asked immediately before the effect. */
  start(node: NodeRow, material: NodeMaterial, stillMine: () => Promise<boolean>): Promise<void>
  /** Asks it to stop, and kills it when it has not stopped in time: called again until it is gone. */
  stop(node: NodeRow): Promise<void>
  kill(node: NodeRow): Promise<void>
  /** A copy of its data under this version's name, made once, before another version touches it. */
  keepCopy(node: NodeRow, version: string): Promise<void>
  restoreCopy(node: NodeRow, version: string): Promise<void>
  /** Of all versions. */
  removeCopies(node: NodeRow): Promise<void>
  /** Everything there is of it here, for good. */
  remove(node: NodeRow): Promise<void>
  /** Versions it can start, oldest first. */
  readonly versions: string[]
}
