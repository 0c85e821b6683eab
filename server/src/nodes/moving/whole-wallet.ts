import { join } from 'node:path'
import { digestOfFile, type FileDigest } from '../../platform/file-digest.ts'
import { StartFault } from '../../platform/start-fault.ts'
import type { WalletDirectory } from './wallet-directory.ts'

export const databaseDigests = ({ opened, databaseFiles }: WalletDirectory): Promise<FileDigest[]> =>
  Promise.all(databaseFiles.map((name) => digestOfFile(join(opened, name), name)))

/**
 * A copy of a released directory may be incomplete, or a mixture of two. Channel data that is hours old looks valid, so the files are
 * compared with the digests in the manifest.
 */
export async function requireAsReleased(wallet: WalletDirectory): Promise<void> {
  const { files } = wallet.manifest ?? {}
  if (!files) return
  const found = await databaseDigests(wallet)
  const shaOf = (list: FileDigest[], name: string): string | undefined => list.find((file) => file.name === name)?.sha256
  const names = new Set([...files, ...found].map(({ name }) => name))
  const wrong = [...names].find((name) => shaOf(files, name) !== shaOf(found, name))
  if (wrong === undefined) return
  const what = shaOf(found, wrong) === undefined ? 'is missing' : 'differs from what the release wrote'
  throw new StartFault(
    78,
    `${wallet.path}: ${wrong} ${what}. Copy the released directory again, to a name that does not exist. If phoenixd has run on it since, and you are sure that this copy is the newest, add --newest`,
  )
}
