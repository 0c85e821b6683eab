import type { NodeAddress } from '../platform/node-agent.ts'
import type { Desired, History, Observed } from './node.ts'

/** What a runtime has to know of a node. */
export type NodeSpec = {
  id: string
  autoLiquidity: string
  desired: Desired
  history: History
  /** The database's clock. */
  nowMs: number
}

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

/** Where a node's API can be reached from this process. */
export type Address = NodeAddress
export type AddressOf = (nodeId: string) => Promise<Address | undefined>

/** Why a node cannot be started here, in words for its owner; what else goes wrong is for the log. */
export class CannotStart extends Error {}

/** Where nodes run. Every call can be repeated: it is made again whenever it is not known whether the last one worked. */
export interface Runtime {
  observe(node: NodeSpec): Promise<Observation>
  /** Starts the desired version as the desired run. The fence is checked immediately before the effect. */
  start(node: NodeSpec, material: NodeMaterial, stillMine: () => Promise<boolean>): Promise<void>
  /** Asks it to stop, and kills it when it has not stopped in time: called again until it is gone. */
  stop(node: NodeSpec): Promise<void>
  kill(node: NodeSpec): Promise<void>
  /** A copy of its data under this version's name, made once, before another version touches it. */
  keepCopy(node: NodeSpec, version: string): Promise<void>
  restoreCopy(node: NodeSpec, version: string): Promise<void>
  /** Of all versions. */
  removeCopies(node: NodeSpec): Promise<void>
  /** Everything there is of it here, for good. */
  remove(node: NodeSpec): Promise<void>
  /** Undefined: it was never started here. One that has stopped since refuses the connection. */
  address: AddressOf
  /** Reports nodes that stopped by themselves, again and again until the callback succeeds. Returns how to end it. */
  watch(stopped: (nodeId: string) => Promise<void>): () => void
  /** Versions it can start, oldest first. */
  readonly versions: string[]
}
