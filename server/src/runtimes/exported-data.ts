import { existsSync, renameSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { crashpoint } from '../platform/crashpoint.ts'
import { syncDirectory, writeSecretFile } from '../platform/data-dir.ts'
import { removeTree } from '../platform/trees.ts'

/**
 * Writes a wallet into a new directory that only we can read. `fill` makes the directory and copies the channels. The directory is either
 * complete or absent, so it can be repeated after a crash. Until it is complete it has the name of the release, which no other directory has.
 */
export async function exportData(
  to: string,
  releaseId: string,
  fill: (directory: string) => Promise<void>,
  texts: Record<string, string>,
): Promise<void> {
  const target = resolve(to)
  if (existsSync(target)) throw new Error(`${target} already exists`)
  const part = `${target}.${releaseId}`
  await removeTree(part)
  await fill(part)
  for (const [name, text] of Object.entries(texts)) writeSecretFile(join(part, name), text)
  crashpoint('release: copied')
  renameSync(part, target)
  syncDirectory(dirname(target))
  crashpoint('release: exported')
}
