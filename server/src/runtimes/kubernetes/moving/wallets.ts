import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type NodeMaterial, TryAgain } from '../../../nodes/runtime.ts'
import { crashpoint } from '../../../platform/crashpoint.ts'
import { digestOfFile, type FileDigest } from '../../../platform/file-digest.ts'
import { StartFault } from '../../../platform/start-fault.ts'
import { type ConfLines, phoenixConf } from '../../phoenix-conf.ts'
import type { NodeObjects } from '../node-objects.ts'
import { ensureSecret } from '../node-secret.ts'
import {
  claimOf,
  DIGEST,
  nodeName,
  PATHS,
  RELEASED,
  RUN,
  STARTED,
  type Storage,
  secretName,
  statefulSetOf,
  VERSION,
  WALLET,
} from '../objects.ts'
import { isScaledDown } from '../pod-state.ts'
import type { Claim, Stored } from '../types.ts'
import { withVolume } from './volume.ts'
import type { Volume } from './volume-client.ts'
import { findWalletClaims, type SoughtWallet, type WalletClaim } from './wallet-claims.ts'

export type KubernetesWalletsOptions = {
  objects: NodeObjects
  storage: Storage
  /** The service's own image, which is also run to serve the files of a volume. */
  image: string
  confLines: ConfLines
}

const MAX_TRIES = 5

export type WalletNode = { id: string; autoLiquidity: string; material: NodeMaterial }
/** The files of a wallet, and the digest that identifies their content. */
export type WalletFiles = { directory: string; names: string[]; digest: string }
export type LastRun = { run: number; version: string }

/** Moves wallets into and out of the volumes of a cluster. Every call can be repeated. */
export class KubernetesWallets {
  readonly #options: KubernetesWalletsOptions
  readonly #objects: NodeObjects

  constructor(options: KubernetesWalletsOptions) {
    this.#options = options
    this.#objects = options.objects
  }

  /** `unknownOf` returns the given ids that the database does not know. */
  claimsOf(wallet: SoughtWallet, unknownOf: (nodeIds: string[]) => Promise<string[]>): Promise<WalletClaim[]> {
    return findWalletClaims(this.#objects, wallet, unknownOf)
  }

  /**
   * Records the node's id and the digest of the wallet, so that an interrupted adoption continues with the same node and data. Call it before
   * the source directory is changed, and again if its files have changed since.
   */
  async begin(nodeId: string, lightningId: string, digest: string): Promise<void> {
    const { client, place } = this.#objects
    const annotations = { [WALLET]: lightningId, [DIGEST]: digest }
    const claim = claimOf(place, nodeId, nodeName(nodeId), this.#options.storage, { annotations })
    if (!(await client.create(PATHS.claims(place.namespace), claim)))
      await this.#annotate(nodeId, annotations, (existing) => requireUnused(nodeId, existing))
    crashpoint('adopt: the id is chosen')
  }

  /**
   * Replaces what is in the volume. Another process may have finished this adoption at any time, and its node may have run. So everything
   * is checked while our pod has the volume: to use the volume, others must remove that pod first, and without the pod we cannot write.
   */
  async fill(node: WalletNode, { directory, names, digest }: WalletFiles, requireOurs: () => Promise<void>): Promise<void> {
    const stored = await this.#withVolume(node, nodeName(node.id), true, async (volume) => {
      const { statefulSet, claim } = await this.#objects.read(node.id)
      if (statefulSet) throw new StartFault(1, `${node.id} has been started since`)
      requireUnused(node.id, claim)
      if (claim?.metadata.annotations?.[DIGEST] !== digest)
        throw new StartFault(1, `another process has begun to adopt other data as ${node.id}`)
      await requireOurs()
      return volume.replaceFiles(directory, names)
    })
    if (digestOf(stored) !== digest) throw new Error('the files changed while they were copied')
    crashpoint('adopt: in place')
  }

  /** Nothing of the node runs, and nothing will run until someone starts it again. */
  async isStopped(nodeId: string): Promise<boolean> {
    const { statefulSet, pod } = await this.#objects.read(nodeId)
    return (statefulSet === undefined || isScaledDown(statefulSet)) && pod === undefined
  }

  /** The release with which the node's wallet has left; undefined if the wallet is here. Throws if the node has no volume. */
  async releaseOf(nodeId: string): Promise<string | undefined> {
    return (await this.#claim(nodeId)).metadata.annotations?.[RELEASED]
  }

  /** From here on, this cluster never starts the node again, whatever a restored database says. */
  async fence(nodeId: string, releaseId: string, lastRun: LastRun): Promise<void> {
    await this.#annotate(nodeId, { [RELEASED]: releaseId })
    await this.#fenceLateStart(nodeId, releaseId, lastRun)
    crashpoint('move: no daemon can start')
  }

  async copyOut(node: WalletNode, to: string): Promise<void> {
    const { metadata } = await this.#claim(node.id)
    await this.#withVolume(node, metadata.name, false, (volume) => volume.copyTo(to))
  }

  close(): void {
    this.#objects.client.close()
  }

  async #claim(nodeId: string): Promise<Stored<Claim>> {
    const { claim, claimName } = await this.#objects.read(nodeId)
    if (!claim) throw new Error(`the claim ${claimName} is missing`)
    return claim
  }

  async #annotate(
    nodeId: string,
    annotations: Record<string, string>,
    check: (claim: Stored<Claim>) => void = () => undefined,
  ): Promise<void> {
    await untilUnchanged(async () => {
      const claim = await this.#claim(nodeId)
      check(claim)
      const value = { ...claim.metadata.annotations, ...annotations }
      await this.#objects.client.patch(this.#objects.claimPath(claim.metadata.name), claim, [
        { op: 'add', path: '/metadata/annotations', value },
      ])
    })
  }

  /**
   * A replica of the service that was paused in the middle of a start may continue now. It creates the StatefulSet only if there
   * is none, and changes it only if it has not changed. So creating or changing it here stops that replica.
   */
  async #fenceLateStart(nodeId: string, releaseId: string, { run, version }: LastRun): Promise<void> {
    const { client, place } = this.#objects
    const { metadata } = await this.#claim(nodeId)
    await untilUnchanged(async () => {
      const found = await this.#objects.statefulSet(nodeId)
      const before = found ? found.metadata.annotations : { [RUN]: String(run), [VERSION]: version }
      const annotations = { ...before, [RELEASED]: releaseId }
      if (found) {
        if (before?.[RELEASED] === releaseId) return
        const change = [{ op: 'add' as const, path: '/metadata/annotations', value: annotations }]
        await client.patch(this.#objects.statefulSetPath(nodeId), found, change)
        return
      }
      // The image is not that of a daemon, so no daemon starts even if someone scales this StatefulSet up.
      const launch = { image: this.#options.image, chainArguments: [], claim: metadata.name, secret: secretName(nodeId, 0) }
      const set = statefulSetOf(place, nodeId, launch, annotations, 0)
      if (!(await client.create(PATHS.statefulSets(place.namespace), set)))
        throw new TryAgain(`the StatefulSet of ${nodeId} has just been created`)
    })
  }

  async #withVolume<T>(
    { id, autoLiquidity, material }: WalletNode,
    claim: string,
    isWritable: boolean,
    work: (volume: Volume) => Promise<T>,
  ): Promise<T> {
    const { image, confLines } = this.#options
    if (!(await this.isStopped(id)))
      throw new TryAgain(`the volume of ${id} cannot be opened: its pod still exists, or its StatefulSet is not scaled down`)
    const conf = phoenixConf({ autoLiquidity }, material, confLines)
    const secret = await ensureSecret(this.#objects, id, { seed: material.seed, conf })
    return withVolume(this.#objects, id, { image, claim, secret, isWritable, password: material.password }, work)
  }
}

function requireUnused(nodeId: string, claim: Stored<Claim> | undefined): void {
  const { [STARTED]: started, [RELEASED]: releaseId } = claim?.metadata.annotations ?? {}
  if (started !== undefined) throw new StartFault(1, `${nodeId} has been started since`)
  if (releaseId !== undefined) throw new StartFault(1, `${nodeId} was released as ${releaseId} since`)
}

/** Retries, because Kubernetes changes objects too, for example a claim when it is bound. */
async function untilUnchanged(change: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change()
    } catch (error) {
      if (!(error instanceof TryAgain) || attempt === MAX_TRIES) throw error
    }
  }
}

export const digestOf = (files: FileDigest[]): string =>
  createHash('sha256')
    .update(JSON.stringify([...files].sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ name, sha256 }) => [name, sha256])))
    .digest('hex')

export const digestOfFiles = async (directory: string, names: string[]): Promise<string> =>
  digestOf(await Promise.all(names.map((name) => digestOfFile(join(directory, name), name))))
