import type { NodeObjects } from '../node-objects.ts'
import { DIGEST, nodeIdOf, PATHS, RELEASED, STARTED, secretName, selectorOf, WALLET } from '../objects.ts'
import { pickClaim, pickStatefulSet } from '../picks.ts'
import type { Secret, SeenClaim, SeenStatefulSet, Stored } from '../types.ts'

/** What the cluster has of a wallet whose node the database does not know. */
export type WalletClaim = {
  nodeId: string
  /** The digest of the files when the adoption began; undefined if the wallet was not adopted. */
  digest: string | undefined
  /** A daemon may have used the data, so it may be newer than any copy. */
  hasStarted: boolean
  releaseId: string | undefined
}

export type SoughtWallet = { lightningId: string; seed: string }

/**
 * Adoptions that have begun are recorded only in the cluster: a claim names its wallet from the moment it is created. A node that
 * an earlier version created here is recognized by the seed in its Secret.
 */
export async function findWalletClaims(
  objects: NodeObjects,
  wallet: SoughtWallet,
  unknownOf: (nodeIds: string[]) => Promise<string[]>,
): Promise<WalletClaim[]> {
  const { client, place } = objects
  const query = { labelSelector: selectorOf(place) }
  const claims = (await client.list<SeenClaim>(PATHS.claims(place.namespace), query, pickClaim)).items
  const sets = (await client.list<SeenStatefulSet>(PATHS.statefulSets(place.namespace), query, pickStatefulSet)).items
  const nodeIds = new Set([...claims, ...sets].map(({ metadata }) => nodeIdOf(metadata)))
  const found: WalletClaim[] = []
  for (const nodeId of await unknownOf([...nodeIds])) {
    const own = claims.filter(({ metadata }) => nodeIdOf(metadata) === nodeId)
    const isNamed = own.some((claim) => annotation(claim, WALLET) === wallet.lightningId)
    if (!isNamed && !(await hasSeed(objects, nodeId, wallet.seed))) continue
    const wasAdopted = own.length === 1 && own[0] && annotation(own[0], DIGEST)
    found.push({
      nodeId,
      digest: wasAdopted || undefined,
      hasStarted:
        !wasAdopted ||
        own.some((claim) => annotation(claim, STARTED) !== undefined) ||
        sets.some(({ metadata }) => nodeIdOf(metadata) === nodeId),
      releaseId: own.map((claim) => annotation(claim, RELEASED)).find((id) => id !== undefined),
    })
  }
  return found
}

const annotation = ({ metadata }: Stored<SeenClaim>, name: string): string | undefined => metadata.annotations?.[name]

async function hasSeed({ client, place }: NodeObjects, nodeId: string, seed: string): Promise<boolean> {
  const secret = await client.get<Secret>(`${PATHS.secrets(place.namespace)}/${secretName(nodeId, 0)}`)
  const words = Buffer.from(secret?.data['seed.dat'] ?? '', 'base64').toString('utf8')
  return (words.match(/[a-z]+/g) ?? []).join(' ') === seed
}
