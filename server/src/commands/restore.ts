import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { hostIdOf } from '../platform/data-dir.ts'
import { checkMasterKey } from '../platform/master-key.ts'
import { type MasterKey, masterKeyOf } from '../platform/secrets.ts'
import { StartFault } from '../platform/start-fault.ts'
import { restoreBackup } from '../store/backup/restore.ts'
import type { Sql, StoreAddress } from '../store/db.ts'
import { countNodesOfMachines, hostsOfNodes, takeOverDeletedNodes } from '../store/nodes/nodes.ts'
import { findSetting, installationOf, replaceSetting } from '../store/settings.ts'
import { withEmbedded } from './embedded-store.ts'
import { ownMasterKey } from './own-master-key.ts'
import { summaryOf } from './summary.ts'

/**
 * Fills an empty database from a backup. The directories of nodes are never touched: a node that runs on older channel data can lose its
 * money.
 */
export async function restore(config: Config, args: string[]): Promise<void> {
  const [file] = args
  if (file === undefined || args.length > 1) throw new StartFault(78, 'usage: restore FILE, or restore - for standard input')
  if (file !== '-' && !existsSync(file)) throw new StartFault(78, `${file} does not exist`)
  // Read the key before anything is created: a newly generated one could not open the secrets in the backup.
  const [master, previous] = [masterKeyIn(config), config.previousMasterKey && masterKeyOf(config.previousMasterKey)]
  const check = async (sql: Sql): Promise<void> => {
    const settings = {
      settingOnce: (name: string) => findSetting(sql, name),
      replaceSetting: (name: string, value: Buffer) => replaceSetting(sql, name, value),
    }
    await checkMasterKey(settings, master, previous)
    if (!config.kubernetes) return refuseForeignNodes(sql, config.dataDir)
    await refuseNodesOfMachines(sql)
    await takeOverDeletedNodes(sql, await installationOf(sql))
  }
  const work = (address: StoreAddress) => restoreBackup(address, file === '-' ? process.stdin : createReadStream(file), check)
  const { head, rows } = await (config.store.kind === 'server' ? work(config.store.url) : withEmbedded(config, work))
  process.stderr.write(
    [
      `Restored: ${summaryOf(rows)}, as of ${head.createdAt}.`,
      'What happened after that time is unknown to this database:',
      '- Payments and top-ups created since then are missing, even if they were paid.',
      '- Payments redeemed since then can be redeemed again. API keys revoked and secrets replaced since then work again.',
      '- Two-factor sign-in turned on since then is off, used recovery codes work again, and accounts deleted since then exist again.',
      '- Nodes deleted since then run again, and nodes created since then are not managed (their data is kept).',
      '- Readers of the event feed must start without a cursor. Everybody has to sign in again.\n',
    ].join('\n'),
  )
}

function masterKeyIn(config: Config): MasterKey {
  const key = ownMasterKey(config)
  if (key) return key
  const path = join(config.dataDir, 'master.key')
  throw new StartFault(
    78,
    `MASTER_KEY: a backup is only useful with the master key it was made with; copy that key to ${path}, or set MASTER_KEY`,
  )
}

/** If two machines run the same node, its money can be lost, so restoring a backup never moves nodes to another machine by itself. */
async function refuseForeignNodes(sql: Sql, dataDir: string): Promise<void> {
  const path = join(dataDir, 'host.id')
  const own = existsSync(path) ? hostIdOf(dataDir) : undefined
  const foreign = (await hostsOfNodes(sql)).filter((host) => host !== own)
  if (foreign.length > 0)
    throw new StartFault(
      78,
      `the nodes in this backup run on another machine (host ${foreign.join(', ')}): stop it for good, then move its host.id, nodes and hub into ${dataDir} and restore again`,
    )
}

/** The cluster would never start the nodes of a machine, but their owners would be charged. */
async function refuseNodesOfMachines(sql: Sql): Promise<void> {
  const count = await countNodesOfMachines(sql)
  if (count > 0)
    throw new StartFault(
      78,
      `${count} nodes in this backup run on a machine: release them there, make a new backup, and adopt them here once it is restored`,
    )
}
