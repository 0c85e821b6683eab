import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type NodeMaterial, TryAgain } from '../../../nodes/runtime.ts'
import { crashpoint } from '../../../platform/crashpoint.ts'
import { type ConfLines, phoenixConf } from '../../phoenix-conf.ts'
import type { NodeObjects } from '../node-objects.ts'
import { ensureSecret } from '../node-secret.ts'
import { claimOf, DIGEST, nodeIdOf, nodeName, PATHS, RELEASED, type Storage, selectorOf, WALLET } from '../objects.ts'
import type { Claim, Stored } from '../types.ts'
import { type Volume, withVolume } from './volume.ts'
import { fileAt, type VolumeFile } from './volume-server.ts'

export type KubernetesWalletsOptions = {
  objects: NodeObjects
  storage: Storage
  /** The service's own, which also runs beside a volume. */
  image: string
  confLines: ConfLines
}

const MAX_TRIES = 5

/** A claim that an adoption has made, whether or not there is a node. */
export type WalletClaim = { nodeId: string; digest: string; hasStarted: boolean; releaseId: string | undefined }
export type WalletNode = { id: string; autoLiquidity: string; material: NodeMaterial }

/** Moves wallets into and out of the volumes of a cluster. Every call can be repeated. */
export class KubernetesWallets {
  readonly #options: KubernetesWalletsOptions
  readonly #objects: NodeObjects

  constructor(options: KubernetesWalletsOptions) {
    this.#options = options
    this.#objects = options.objects
  }

  /** The cluster itself is the record of begun adoptions: a claim names its wallet from the moment that it exists. */
  async claimsOf(lightningId: string): Promise<WalletClaim[]> {
    const { client, place } = this.#objects
    const { items } = await client.list<Claim>(PATHS.claims(place.namespace), { labelSelector: selectorOf(place) })
    const own = items.filter(({ metadata }) => metadata.annotations?.[WALLET] === lightningId)
    return Promise.all(
      own.map(async ({ metadata }) => ({
        nodeId: nodeIdOf(metadata),
        digest: metadata.annotations?.[DIGEST] ?? '',
        hasStarted: (await this.#objects.statefulSet(nodeIdOf(metadata))) !== undefined,
        releaseId: metadata.annotations?.[RELEASED],
      })),
    )
  }

  /** Before the wallet's source is changed. */
  async begin(nodeId: string, lightningId: string, digest: string): Promise<void> {
    const { client, place } = this.#objects
    const annotations = { [WALLET]: lightningId, [DIGEST]: digest }
    const claim = claimOf(place, nodeId, nodeName(nodeId), this.#options.storage)
    if (!(await client.create(PATHS.claims(place.namespace), { ...claim, metadata: { ...claim.metadata, annotations } })))
      await this.#annotate(nodeId, annotations)
    crashpoint('adopt: the id is chosen')
  }

  /** Must only be called while no node has this id: what is in the volume is replaced. */
  async fill(node: WalletNode, directory: string, names: string[], digest: string): Promise<void> {
    const stored = await this.#withVolume(node, nodeName(node.id), true, (volume) => volume.replaceFiles(directory, names))
    if (digestOf(stored) !== digest) throw new Error('the files changed while they were copied')
    crashpoint('adopt: in place')
  }

  /** Nothing of the node runs, and nothing will. */
  async isStopped(nodeId: string): Promise<boolean> {
    const { statefulSet, pod } = await this.#objects.read(nodeId)
    return (statefulSet === undefined || statefulSet.spec.replicas === 0) && pod === undefined
  }

  /** The release with which the node's wallet has left; undefined if it is still here. Throws if it has no volume. */
  async releaseOf(nodeId: string): Promise<string | undefined> {
    return (await this.#claim(nodeId)).metadata.annotations?.[RELEASED]
  }

  /** From here on, this cluster never starts the node again, whatever a restored database says. */
  async fence(nodeId: string, releaseId: string): Promise<void> {
    await this.#annotate(nodeId, { [RELEASED]: releaseId })
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

  /** Kubernetes changes a claim too, for example when it is bound. */
  async #annotate(nodeId: string, annotations: Record<string, string>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const { metadata } = await this.#claim(nodeId)
      const value = { ...metadata.annotations, ...annotations }
      try {
        await this.#objects.client.patch(this.#objects.claimPath(metadata.name), { metadata }, [
          { op: 'add', path: '/metadata/annotations', value },
        ])
        return
      } catch (error) {
        if (!(error instanceof TryAgain) || attempt === MAX_TRIES) throw error
      }
    }
  }

  async #withVolume<T>(
    { id, autoLiquidity, material }: WalletNode,
    claim: string,
    isWritable: boolean,
    work: (volume: Volume) => Promise<T>,
  ): Promise<T> {
    const { image, confLines } = this.#options
    if (!(await this.isStopped(id))) throw new TryAgain(`a pod is still using the data of ${id}`)
    const conf = phoenixConf({ autoLiquidity }, material, confLines)
    const secret = await ensureSecret(this.#objects, id, { seed: material.seed, conf })
    return withVolume(this.#objects, id, { image, claim, secret, isWritable, password: material.password }, work)
  }
}

/** Identifies the content of a wallet. */
export const digestOf = (files: VolumeFile[]): string =>
  createHash('sha256')
    .update(JSON.stringify([...files].sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ name, sha256 }) => [name, sha256])))
    .digest('hex')

export const digestOfFiles = async (directory: string, names: string[]): Promise<string> =>
  digestOf(await Promise.all(names.map((name) => fileAt(join(directory, name), name))))
