import type { Config } from '../config.ts'
import { openMaterial } from '../nodes/material.ts'
import { autoLiquidityOf } from '../nodes/moving/adopt.ts'
import { MANIFEST } from '../nodes/moving/manifest.ts'
import { confText } from '../nodes/moving/wallet-conf.ts'
import type { WalletDirectory } from '../nodes/moving/wallet-directory.ts'
import { newId } from '../platform/ids.ts'
import { masterKeyOf } from '../platform/secrets.ts'
import { StartFault } from '../platform/start-fault.ts'
import { exportData } from '../runtimes/exported-data.ts'
import { type KubernetesConfig, openWallets } from '../runtimes/kubernetes/kubernetes-host.ts'
import { digestOfFiles, type WalletClaim } from '../runtimes/kubernetes/moving/wallets.ts'
import type { Database } from '../store/db.ts'
import { withMovesLocked } from '../store/nodes/moving.ts'
import { findAnyNode } from '../store/nodes/nodes.ts'
import { findSetting, hasSetting } from '../store/settings.ts'
import { ownMasterKey } from './own-master-key.ts'
import type { WalletHome } from './wallet-home.ts'

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
  /** Claims of this wallet whose node the database does not know. */
  const unknownClaims = async ({ lightningId, manifest }: WalletDirectory): Promise<WalletClaim[]> => {
    const claims = await wallets.claimsOf(lightningId)
    // What was released from here is older than a directory that descends from that release.
    const others = claims.filter(({ releaseId }) => releaseId === undefined || !manifest?.releases.includes(releaseId))
    const known = await Promise.all(others.map(({ nodeId }) => findAnyNode(sql, nodeId)))
    return others.filter((_, at) => known[at] === undefined)
  }
  return {
    host,
    versions: [...(config.software.versions?.keys() ?? [])],
    withLock: async (work) => {
      const outcome = await withMovesLocked(sql, work)
      if (outcome === 'locked') throw new StartFault(75, 'another process is moving a wallet now; try again when it has finished')
      return outcome.result
    },
    versionThatRan: () => undefined,
    findBegun: async (wallet, isNewest) => {
      const begun = (await unknownClaims(wallet)).find(({ hasStarted }) => !hasStarted)
      if (begun && !isNewest && begun.digest !== (await digest(wallet)))
        throw new StartFault(
          78,
          `the adoption of this wallet as ${begun.nodeId} was already begun with other data; repeat it with that directory. If this one is newer because the wallet has run since, add --newest`,
        )
      return begun?.nodeId
    },
    requireOnlyCopy: async (wallet) => {
      const started = (await unknownClaims(wallet)).find(({ hasStarted }) => hasStarted)
      if (started)
        throw new StartFault(
          78,
          `${started.nodeId} in this cluster has this wallet, and its data is newer, but the database does not know it; restore a newer backup`,
        )
    },
    begin: async (wallet, begun) => {
      const nodeId = begun ?? newId('node')
      await wallets.begin(nodeId, wallet.lightningId, await digest(wallet))
      return nodeId
    },
    fill: async (nodeId, wallet, material, check) => {
      const node = { id: nodeId, autoLiquidity: autoLiquidityOf(wallet), material }
      await wallets.fill(node, wallet.opened, wallet.databaseFiles, await digest(wallet))
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
    },
    isStopped: ({ id }) => wallets.isStopped(id),
    writeTo: async (directory, node, manifest) => {
      const material = await openMaterial(sql, keys, node.id)
      const releaseId = node.releases.at(-1) ?? ''
      await wallets.fence(node.id, releaseId)
      const { id, autoLiquidity } = node
      const fill = (to: string): Promise<void> => wallets.copyOut({ id, autoLiquidity, material }, to)
      const conf = confText(autoLiquidity, material)
      await exportData(directory, releaseId, fill, { 'seed.dat': material.seed, 'phoenix.conf': conf, [MANIFEST]: manifest })
    },
    close: () => wallets.close(),
  }
}
