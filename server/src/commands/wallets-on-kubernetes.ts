import type { Config } from '../config.ts'
import { openMaterial } from '../nodes/material.ts'
import { autoLiquidityOf } from '../nodes/moving/adopt.ts'
import { confText } from '../nodes/moving/wallet-conf.ts'
import type { WalletDirectory } from '../nodes/moving/wallet-directory.ts'
import { newId } from '../platform/ids.ts'
import { masterKeyOf } from '../platform/secrets.ts'
import { StartFault } from '../platform/start-fault.ts'
import { type KubernetesConfig, openWallets } from '../runtimes/kubernetes/kubernetes-host.ts'
import type { WalletClaim } from '../runtimes/kubernetes/moving/wallet-claims.ts'
import { digestOfFiles } from '../runtimes/kubernetes/moving/wallets.ts'
import type { Database } from '../store/db.ts'
import { lockWallet, type RequireLock, withMovesLocked } from '../store/nodes/moving.ts'
import { findAnyNode, unknownNodes } from '../store/nodes/nodes.ts'
import { findSetting, hasSetting } from '../store/settings.ts'
import { exportWallet } from './exported-wallet.ts'
import { ownMasterKey } from './own-master-key.ts'
import { networkOf, type WalletHome } from './wallet-home.ts'

/** Every node has a volume in the cluster, and its seed in the database and in a Secret. */
export async function walletsOnKubernetes(config: Config, kubernetes: KubernetesConfig, sql: Database): Promise<WalletHome> {
  if (!(await hasSetting(sql, 'installation')))
    throw new StartFault(78, 'DATABASE_URL: no service has run on Kubernetes with this database')
  const host = (await findSetting(sql, 'installation')).toString('utf8')
  const wallets = openWallets(config, kubernetes, host)
  const keys = [ownMasterKey(config), config.previousMasterKey && masterKeyOf(config.previousMasterKey)].filter(
    (key) => key !== undefined,
  )
  const digest = ({ opened, databaseFiles }: WalletDirectory): Promise<string> => digestOfFiles(opened, databaseFiles)
  let requireLock: RequireLock = () => Promise.reject(new Error('the lock is not held'))
  /** Claims of this wallet whose node the database does not know. */
  const unknownClaims = async ({ manifest, ...wallet }: WalletDirectory): Promise<WalletClaim[]> => {
    const claims = await wallets.claimsOf(wallet, (nodeIds) => unknownNodes(sql, nodeIds))
    // What was released from here is older than a directory that descends from that release.
    return claims.filter(({ releaseId }) => releaseId === undefined || !manifest?.releases.includes(releaseId))
  }
  const isBegun = ({ hasStarted, releaseId }: WalletClaim): boolean => !hasStarted && releaseId === undefined
  /** Throws if another process has adopted the wallet meanwhile, or has taken the lock on moves. */
  const requireOurs = (nodeId: string, lightningId: string): Promise<void> =>
    sql.begin(async (transaction) => {
      await lockWallet(transaction, lightningId)
      if (await findAnyNode(transaction, nodeId)) throw new StartFault(1, `another process has adopted the wallet as ${nodeId}`)
      await requireLock()
    })
  return {
    host,
    versions: [...(config.software.versions?.keys() ?? [])],
    withLock: async (work) => {
      const outcome = await withMovesLocked(sql, (required) => {
        requireLock = required
        return work()
      })
      if (outcome === 'locked') throw new StartFault(75, 'another process is moving a wallet now; try again when it has finished')
      return outcome.result
    },
    requireLock: () => requireLock(),
    versionThatRan: () => undefined,
    findBegun: async (wallet, isNewest) => {
      const begun = (await unknownClaims(wallet)).find(isBegun)
      if (begun && !isNewest && begun.digest !== (await digest(wallet)))
        throw new StartFault(
          78,
          `the adoption of this wallet as ${begun.nodeId} was already begun with other data; repeat it with the directory used then. If this directory is newer because the wallet has run since, add --newest`,
        )
      return begun?.nodeId
    },
    requireOnlyCopy: async (wallet) => {
      const newer = (await unknownClaims(wallet)).find((claim) => !isBegun(claim))
      if (newer?.releaseId !== undefined)
        throw new StartFault(
          78,
          `${newer.nodeId} in this cluster had this wallet and was released, and ${wallet.path} is older; adopt the directory of ${newer.releaseId}`,
        )
      if (newer)
        throw new StartFault(
          78,
          `${newer.nodeId} in this cluster has this wallet, and its data is newer, but the database does not know it; restore a newer backup`,
        )
    },
    begin: async (wallet, begun) => {
      const nodeId = begun ?? newId('node')
      await wallets.begin(nodeId, wallet.lightningId, await digest(wallet))
      return nodeId
    },
    fill: async (nodeId, wallet, material, check) => {
      const node = { id: nodeId, autoLiquidity: autoLiquidityOf(wallet), material }
      const { opened: directory, databaseFiles: names, lightningId } = wallet
      const files = { directory, names, digest: await digest(wallet) }
      // A daemon may have written until the seed was replaced.
      await wallets.begin(nodeId, lightningId, files.digest)
      await wallets.fill(node, files, () => requireOurs(nodeId, lightningId))
      check()
    },
    forget: () => undefined,
    requireReleasable: async (node) => {
      if (node.host !== host) throw new StartFault(78, `${node.id} is not in this cluster; release it where it runs`)
      const releaseId = await wallets.releaseOf(node.id)
      if (releaseId !== undefined && !node.releases.includes(releaseId))
        throw new StartFault(
          78,
          `${node.id} was released as ${releaseId} already, so its data here may be old, which can lose money`,
        )
      // A release cannot be cancelled, and there would be nothing to export.
      if (node.releasedAt === null && node.version === null && !node.isAdopted)
        throw new StartFault(78, `${node.id} has never run, so it has no wallet yet; start it first, or delete it`)
    },
    isStopped: ({ id }) => wallets.isStopped(id),
    ifRunning: 'start the service; if the machine of its pod is lost, see "What happens when" in docs/kubernetes.md',
    reminder: (directory) =>
      `Never start another daemon with this seed: two daemons with one seed lose money. Only ${directory} is marked. Delete it, and whatever it was copied from.`,
    writeTo: async (directory, node, manifest) => {
      const material = await openMaterial(sql, keys, node.id)
      const { id, autoLiquidity, history, desiredVersion } = node
      const lastRun = { run: history.run, version: history.version ?? desiredVersion }
      await wallets.fence(id, node.releases.at(-1) ?? '', lastRun)
      await exportWallet(directory, node, networkOf(config), manifest, {
        fill: (to) => wallets.copyOut({ id, autoLiquidity, material }, to),
        texts: { 'seed.dat': material.seed, 'phoenix.conf': confText(autoLiquidity, material) },
      })
    },
    close: () => wallets.close(),
  }
}
