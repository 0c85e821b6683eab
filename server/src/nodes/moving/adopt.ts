import type { Config } from '../../config.ts'
import { crashpoint } from '../../platform/crashpoint.ts'
import type { MasterKey } from '../../platform/secrets.ts'
import { StartFault } from '../../platform/start-fault.ts'
import { sameVersion } from '../../platform/versions.ts'
import type { Database, Sql } from '../../store/db.ts'
import { insertNode, takeNodeNumber } from '../../store/nodes/creation.ts'
import { findWallet, lockWallet, type RequireLock } from '../../store/nodes/moving.ts'
import { admitNode } from '../admission.ts'
import { newMaterial, sealSecrets } from '../material.ts'
import type { InitialState } from '../node.ts'
import { checkedName } from '../nodes.ts'
import type { NodeMaterial } from '../runtime.ts'
import { MANIFEST, manifestText } from './manifest.ts'
import { confText } from './wallet-conf.ts'
import type { WalletDirectory } from './wallet-directory.ts'

export type AdoptionDeps = { sql: Database; config: Config; master: MasterKey; host: string; versions: string[] }

export type Adoption = {
  accountId: string
  wallet: WalletDirectory
  /** The version that ran last on this data. */
  version: string
  name: string | undefined
  accessMode: 'limited' | 'full'
  isStarted: boolean
}

/**
 * Returns the node's id if this installation has already adopted the wallet, and undefined if it may adopt it. Otherwise throws: a seed
 * that had a node here is accepted again only from a directory that descends from the last release. Any other has older channel data, which
 * can lose money.
 */
export async function findAdopted(sql: Sql, { accountId, wallet }: Adoption): Promise<string | undefined> {
  const known = await findWallet(sql, wallet.lightningId)
  if (!known) return undefined
  const { nodeId } = known
  if (known.isReleased) {
    const last = known.releases.at(-1) ?? ''
    if (wallet.manifest?.releases.includes(last)) return undefined
    throw new StartFault(
      78,
      `${wallet.path} is older than the release of ${nodeId}, and old channel data can lose money; adopt the newest directory`,
    )
  }
  if (known.isPurged)
    throw new StartFault(78, `${nodeId} had this seed and was deleted for good; recover the funds with the recovery words`)
  if (known.isDeleted) throw new StartFault(78, `${nodeId} has this seed and is deleted; undelete it, because its data is newer`)
  if (!known.isAdopted || known.accountId !== accountId)
    throw new StartFault(78, `${nodeId} already has this seed, and two daemons with one seed lose money`)
  return nodeId
}

/** Called before anything is changed, so that after a refusal the wallet can still be started where it was. */
export async function checkAdoption({ sql, config, host, versions }: AdoptionDeps, adoption: Adoption): Promise<void> {
  const { accountId, version, name, isStarted } = adoption
  if (!versions.some((one) => sameVersion(one, version)))
    throw new StartFault(78, `version ${JSON.stringify(version)} is not one of those in NODE_VERSIONS: ${versions.join(', ')}`)
  if (name !== undefined) checkedName(name)
  await sql.begin((transaction) => admitNode(transaction, limitsOf(config, isStarted), accountId, host))
}

/** The node's data must already be in place. Returns the id of the existing node if a concurrent call has adopted the wallet first. */
export async function insertAdopted(
  deps: AdoptionDeps,
  nodeId: string,
  adoption: Adoption,
  material: NodeMaterial,
  requireLock: RequireLock,
): Promise<string | undefined> {
  const { sql, config, master, host, versions } = deps
  const { accountId, wallet, accessMode, isStarted } = adoption
  const secrets = sealSecrets(master, accountId, nodeId, material, accessMode)
  const version = versions.find((one) => sameVersion(one, adoption.version)) ?? adoption.version
  return sql.begin(async (transaction) => {
    await lockWallet(transaction, wallet.lightningId)
    const other = await findAdopted(transaction, adoption)
    if (other !== undefined) return other
    // We may have lost the lock on moves. The process that has it now looks for this node while it holds the wallet lock: it
    // either finds the node, or `requireLock` throws here.
    await requireLock()
    await admitNode(transaction, limitsOf(config, isStarted), accountId, host)
    const number = await takeNodeNumber(transaction, accountId)
    await insertNode(transaction, {
      id: nodeId,
      accountId,
      host,
      lightningId: wallet.lightningId,
      name: adoption.name === undefined ? `Node ${number}` : checkedName(adoption.name),
      autoLiquidity: autoLiquidityOf(wallet),
      accessMode,
      ...stateOf(version, isStarted),
      secrets,
      actor: 'operator',
      adopted: { releases: wallet.manifest?.releases ?? [] },
    })
    crashpoint('adopt: not yet committed')
    return undefined
  })
}

/** A stopped node costs nothing. Its owner needs credit to start it. */
const limitsOf = (config: Config, isStarted: boolean) => (isStarted ? config : { ...config, nodePriceSatPerDay: 0 })

export const autoLiquidityOf = ({ conf }: WalletDirectory): string => conf.autoLiquidity ?? '2m'

/** With these files beside the channels, the node's directory can be adopted or released even if the node has never been started. */
export function textsOf(wallet: WalletDirectory, material: NodeMaterial): Record<string, string> {
  const { manifest } = wallet
  return {
    'seed.dat': material.seed,
    'phoenix.conf': confText(autoLiquidityOf(wallet), material),
    ...(manifest && { [MANIFEST]: manifestText({ ...manifest, version: undefined, files: undefined }) }),
  }
}

/** Existing passwords stay valid for the wallet's clients. Missing ones are generated, as phoenixd does. */
export function materialOf({ seed, conf }: WalletDirectory): NodeMaterial {
  const generated = newMaterial()
  return {
    seed,
    password: conf.password ?? generated.password,
    restrictedPassword: conf.restrictedPassword ?? generated.restrictedPassword,
    webhookSecret: conf.webhookSecret ?? generated.webhookSecret,
    controlToken: generated.controlToken,
  }
}

/** Records the version as one that has run, so that missing data counts as lost and is never replaced by an empty wallet. */
const stateOf = (version: string, isStarted: boolean): InitialState => ({
  status: isStarted ? 'provisioning' : 'stopped',
  desired: { state: isStarted ? 'running' : 'stopped', version, run: 1 },
  history: { exitsMs: [], startedAtMs: null, run: 0, version, reached: true, previousVersion: null },
})
