import type { Config } from '../config.ts'
import type { Network } from '../nodes/lightning-id.ts'
import type { Manifest } from '../nodes/moving/manifest.ts'
import type { WalletDirectory } from '../nodes/moving/wallet-directory.ts'
import type { NodeMaterial } from '../nodes/runtime.ts'
import type { ReleasableNode, RequireLock } from '../store/nodes/moving.ts'

/** Where this installation keeps the wallets of its nodes. Every call can be repeated, and refuses with one line for the operator. */
export type WalletHome = {
  host: string
  /** What this installation can run, oldest first. */
  versions: string[]
  /** One wallet is adopted or released at a time. A second command is refused before it changes anything. */
  withLock: <T>(work: () => Promise<T>) => Promise<T>
  /** Throws if the lock is lost. Called before each step that another move must not take at the same time. */
  requireLock: RequireLock
  /** The version that ran last, if this is the directory of a node here. A restored database may not know that node. */
  versionThatRan: (wallet: WalletDirectory) => string | undefined
  /** The id that an interrupted adoption has chosen for the node of this wallet. Refuses another copy, which may be older. */
  findBegun: (wallet: WalletDirectory, isNewest: boolean) => Promise<string | undefined>
  /** Refuses if a node that the database does not know has this wallet: its data is newer than that of any copy. */
  requireOnlyCopy: (wallet: WalletDirectory, begun: string | undefined) => Promise<void>
  /** Records the id of the node, before the source is changed. */
  begin: (wallet: WalletDirectory, begun: string | undefined) => Promise<string>
  /** Puts the data where the node will look for it. `check` is called once everything is copied, and before the node exists. */
  fill: (nodeId: string, wallet: WalletDirectory, material: NodeMaterial, check: () => void) => Promise<void>
  /** Removes the record of the adoption, once the node exists. */
  forget: (wallet: WalletDirectory) => void
  /** The checks before a release that depend on where the node runs. */
  requireReleasable: (node: ReleasableNode) => Promise<void>
  isStopped: (node: ReleasableNode) => Promise<boolean>
  /** What the operator can do about a node that does not stop. */
  ifRunning: string
  /** What the operator must know about the seed, once this directory was adopted. */
  reminder: (directory: string) => string
  /** Writes the wallet to the directory. Afterwards, no daemon can start with the data here. */
  writeTo: (directory: string, node: ReleasableNode, manifest: Manifest) => Promise<void>
  close: () => void
}

export const networkOf = ({ software }: Config): Network => (software.kind === 'sandbox' ? 'regtest' : software.chain)
