import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { WalletDirectory } from '../nodes/moving/wallet-directory.ts'
import { readForeignFile } from '../platform/data-dir.ts'
import { isId } from '../platform/ids.ts'
import { StartFault } from '../platform/start-fault.ts'

/**
 * Throws if the directory of another node here has the same seed. A restored database may not know that node, whose daemon may
 * still run and whose data is newer than any copy. A directory whose wallet was moved has no seed any more.
 */
export function requireNoCopyHere(dataDir: string, wallet: WalletDirectory, own: string | undefined): void {
  const nodes = join(dataDir, 'nodes')
  for (const name of existsSync(nodes) ? readdirSync(nodes) : []) {
    if (!isId('node', name) || name === own) continue
    const path = join(nodes, name)
    const { dev, ino, uid } = lstatSync(path, { bigint: true })
    if (String(dev) === wallet.dev && String(ino) === wallet.ino) continue
    const words = readForeignFile(join(path, 'seed.dat'), Number(uid))?.match(/[a-z]+/g) ?? []
    if (words.join(' ') === wallet.seed)
      throw new StartFault(78, `${path} has this wallet too, and the data there may be newer; adopt that directory`)
  }
}
