import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Config } from '../config.ts'
import { textsOf } from '../nodes/moving/adopt.ts'
import { markMoved, openWalletDirectory, type WalletDirectory } from '../nodes/moving/wallet-directory.ts'
import { hostIdOf } from '../platform/data-dir.ts'
import { isId } from '../platform/ids.ts'
import { processesUsing } from '../platform/linux.ts'
import { StartFault } from '../platform/start-fault.ts'
import { copyFiles } from '../platform/trees.ts'
import { daemonIn } from '../runtimes/process/address.ts'
import { AdoptedData, type Source } from '../runtimes/process/adopted-data.ts'
import { versionsOf } from '../runtimes/process/software.ts'
import type { Database } from '../store/db.ts'
import type { ReleasableNode } from '../store/nodes/moving.ts'
import { findAnyNode } from '../store/nodes/nodes.ts'
import { requireNoCopyHere } from './copies-here.ts'
import { exportWallet } from './exported-wallet.ts'
import { withMovingLock } from './moving-lock.ts'
import { networkOf, type WalletHome } from './wallet-home.ts'

/** Every node has a directory on this machine. */
export function walletsOnMachine(config: Config, sql: Database): WalletHome {
  const { dataDir } = config
  const host = hostIdOf(dataDir)
  const data = new AdoptedData(dataDir)
  return {
    host,
    versions: versionsOf(config.software.versions),
    withLock: (work) => withMovingLock(dataDir, work),
    // The lock cannot be lost: the kernel frees it only when this process ends.
    requireLock: async () => undefined,
    versionThatRan: (wallet) => versionThatRan(dataDir, wallet),
    findBegun: (wallet) => findBegun(sql, data, wallet),
    requireOnlyCopy: async (wallet, begun) => requireNoCopyHere(dataDir, wallet, begun),
    begin: async (wallet, begun) => data.record(wallet.lightningId, wallet, begun),
    fill: async (nodeId, wallet, material, check) => {
      await data.copy(nodeId, wallet, { from: wallet.opened, names: wallet.databaseFiles, texts: textsOf(wallet, material) })
      check()
      data.place(nodeId)
    },
    forget: ({ lightningId }) => data.forget(lightningId),
    requireReleasable: async (node) => {
      if (node.host !== host) throw new StartFault(78, `${node.id} runs on another machine; release it there`)
      walletOf(config, node)
    },
    ifRunning: 'start the service',
    reminder: (directory) => `Never start another daemon with this seed (${directory}): two daemons with one seed lose money.`,
    isStopped: async ({ id }) => processesUsing(join(dataDir, 'nodes', id)).length === 0,
    writeTo: async (directory, node, manifest) => {
      // Read again: before the daemon stopped, it may have added files.
      const wallet = walletOf(config, node)
      markMoved(wallet, node.releases.at(-1) ?? '')
      const fill = (to: string): Promise<void> => copyFiles(wallet.opened, to, [...wallet.databaseFiles, 'phoenix.conf'])
      await exportWallet(directory, node, networkOf(config), manifest, { fill, texts: { 'seed.dat': wallet.seed } })
    },
    close: () => undefined,
  }
}

function walletOf(config: Config, node: ReleasableNode): WalletDirectory {
  const wallet = openWalletDirectory(join(config.dataDir, 'nodes', node.id), networkOf(config))
  if (wallet.lightningId !== node.lightningId) throw new StartFault(78, `${wallet.path} has a different seed than ${node.id}`)
  // The database may have been restored from a backup that is older than the move.
  if (wallet.movedTo !== undefined && !node.releases.includes(wallet.movedTo))
    throw new StartFault(
      78,
      `${node.id} was moved to ${wallet.movedTo} already, so its data here may be old, which can lose money`,
    )
  requireNoCopyHere(config.dataDir, wallet, node.id)
  return wallet
}

async function findBegun(sql: Database, data: AdoptedData, wallet: WalletDirectory): Promise<string | undefined> {
  const { nodeId, source } = data.recorded(wallet.lightningId) ?? {}
  // A record is out of date if the node exists: only removing the record failed. It is also out of date if `wallet` is the
  // directory of that node, which a restored database does not know: the wallet is then adopted under a new id.
  if (nodeId === undefined || !source || (await findAnyNode(sql, nodeId)) || data.isDataOf(nodeId, wallet)) return undefined
  data.requireNotRun(nodeId)
  // A copy other than the recorded one may be older. It is accepted only while the recorded one is unchanged and can still be
  // started.
  if (!isSame(source, wallet) && isMoved(source, wallet))
    throw new StartFault(78, `the adoption of this wallet was already begun with ${source.path}; repeat it with that directory`)
  return nodeId
}

/** The number of a device may change when the machine is restarted. */
const isSame = (source: Source, { path, dev, ino }: Source): boolean =>
  source.ino === ino && (source.dev === dev || source.path === path)

function isMoved(source: Source, { network, seed }: WalletDirectory): boolean {
  try {
    const found = openWalletDirectory(source.path, network)
    return !isSame(source, found) || found.seed !== seed || found.movedTo !== undefined
  } catch {
    // It is gone, or no longer a wallet.
    return true
  }
}

function versionThatRan(dataDir: string, { path }: WalletDirectory): string | undefined {
  const nodeId = basename(path)
  if (!isId('node', nodeId) || dirname(path) !== realpathSync(join(dataDir, 'nodes'))) return undefined
  const last = daemonIn(dataDir, 'nodes', nodeId).read()
  return last?.restored ?? last?.version
}
