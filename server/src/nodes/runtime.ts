import type { NodeAddress } from '../platform/node-agent.ts'
import type { Desired, History, Observed, Restarts } from './node.ts'

/** What a runtime needs to know about a node. */
export type NodeSpec = {
  id: string
  /** The public identity of its wallet. */
  lightningId: string
  autoLiquidity: string
  desired: Desired
  /** An operation such as a stop or a deletion has not ended yet. What is observed may end it. */
  hasOperation: boolean
  history: History
  /**
   * The epoch of the lease. Where several replicas of the service act on the same objects, a runtime refuses to act on an object
   * that has a newer epoch.
   */
  epoch: number
  /** The current time by the database's clock. */
  nowMs: number
}

/** The secrets of a node. Only code that runs or moves nodes opens them, never code that serves requests. */
export type NodeMaterial = {
  seed: string
  password: string
  restrictedPassword: string
  webhookSecret: string
  controlToken: string
}

export type Observation = {
  observed: Observed
  /** The run and version that the process was started with. Also set for a process that has exited if its start was never recorded. */
  process?: { run: number; version: string }
  /** Exits after which the platform itself restarted the process, for as long as the platform keeps count. */
  restarts?: Restarts
  /** Undefined: currently unknown, for example because channels are offline. */
  hasFunds?: boolean
  /** Undefined: currently unknown. */
  balanceSat?: number
}

/** Where this process can reach a node's API. */
export type Address = NodeAddress
export type AddressOf = (nodeId: string) => Promise<Address | undefined>

/** Why a node cannot be started here, in words for its owner. Any other error goes to the log only. */
export class CannotStart extends Error {}

/**
 * Whether the call had an effect is unknown, or something has changed since the last observation. The next pass observes the node again.
 */
export class TryAgain extends Error {}

/** Where nodes run. Every call must be repeatable: it is made again whenever the outcome of the last one is unknown. */
export interface Runtime {
  observe(node: NodeSpec): Promise<Observation>
  /** Starts the desired version as the desired run. `stillMine` checks the lease, and is called immediately before the effect. */
  start(node: NodeSpec, material: NodeMaterial, stillMine: () => Promise<boolean>): Promise<void>
  /** Asks the process to stop, and kills it if it has not stopped in time. Called repeatedly until the process is gone. */
  stop(node: NodeSpec): Promise<void>
  kill(node: NodeSpec): Promise<void>
  /** Copies the node's data under this version's name, once, before another version touches it. False: not finished yet, call again. */
  keepCopy(node: NodeSpec, version: string): Promise<boolean>
  restoreCopy(node: NodeSpec, version: string): Promise<void>
  /** Removes the copies of all versions. */
  removeCopies(node: NodeSpec): Promise<void>
  /** Permanently removes everything on this host that belongs to the node. */
  remove(node: NodeSpec): Promise<void>
  /** Undefined if the node was never started here or, on Kubernetes, has no pod. The node may have stopped since. */
  address: AddressOf
  /**
   * The last output of the node's process, at most `maxBytes`; undefined if there is none. Absent where the service cannot read it.
   */
  readLog?(nodeId: string, maxBytes: number): Promise<string | undefined>
  /**
   * Reports each node that has exited, or has changed in a way that makes another observation necessary. Repeats the report until the
   * callback succeeds. Returns a function that ends the watch.
   */
  watch(changed: (nodeId: string) => Promise<void>): () => void
  /**
   * A healthy node is observed again after this long, unless `watch` reports it earlier. Short where only a request to the node can show
   * that it no longer serves.
   */
  readonly recheckMs: number
  /**
   * How many unresponsive nodes the reconciler waits for in addition to its usual number. None where all nodes share a machine:
   * if the machine stalls, they would all count as hung at once.
   */
  readonly silentAtOnce: number
  /** Versions this runtime can start, oldest first. */
  readonly versions: string[]
}
