import { join } from 'node:path'
import type { Network } from '../nodes/lightning-id.ts'
import { MANIFEST, type Manifest, manifestText } from '../nodes/moving/manifest.ts'
import { openWalletDirectory, type WalletDirectory } from '../nodes/moving/wallet-directory.ts'
import { databaseDigests } from '../nodes/moving/whole-wallet.ts'
import { writeSecretFile } from '../platform/data-dir.ts'
import { StartFault } from '../platform/start-fault.ts'
import { exportData } from '../runtimes/exported-data.ts'
import type { ReleasableNode } from '../store/nodes/moving.ts'
import { faultOf } from './running-store.ts'

export type WalletSource = {
  /** Makes the directory, with the channel database. */
  fill: (directory: string) => Promise<void>
  texts: Record<string, string>
}

/** Writes a directory that another installation can adopt, and can compare with what was released. */
export async function exportWallet(
  directory: string,
  node: ReleasableNode,
  network: Network,
  manifest: Manifest,
  { fill, texts }: WalletSource,
): Promise<void> {
  await exportData(directory, node.releases.at(-1) ?? '', async (part) => {
    await fill(part)
    for (const [name, text] of Object.entries(texts)) writeSecretFile(join(part, name), text)
    const files = await databaseDigests(walletIn(part, node, network))
    writeSecretFile(join(part, MANIFEST), manifestText({ ...manifest, files }))
  })
}

/** After the export, the data here may be purged one day. So the exported data must be the wallet of this node. */
function walletIn(part: string, node: ReleasableNode, network: Network): WalletDirectory {
  try {
    const wallet = openWalletDirectory(part, network)
    if (wallet.lightningId === node.lightningId) return wallet
  } catch (error) {
    throw new StartFault(1, `the data of ${node.id} is not a valid wallet: ${faultOf(error).message}`)
  }
  throw new StartFault(1, `the data of ${node.id} belongs to another wallet`)
}
