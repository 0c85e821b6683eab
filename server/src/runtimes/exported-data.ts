import { existsSync, renameSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { crashpoint } from '../platform/crashpoint.ts'
import { syncDirectory } from '../platform/data-dir.ts'
import { removeTree } from '../platform/trees.ts'

/**
 * Writes a wallet into a new directory. `fill` creates the directory, readable only by us, under a name that ends with the id of
 * the release. It is renamed once it is complete, so `to` is complete or absent, and the call can be repeated after a crash.
 */
export async function exportData(to: string, releaseId: string, fill: (directory: string) => Promise<void>): Promise<void> {
  const target = resolve(to)
  if (existsSync(target)) throw new Error(`${target} already exists`)
  const part = `${target}.${releaseId}`
  await removeTree(part)
  await fill(part)
  crashpoint('release: copied')
  renameSync(part, target)
  syncDirectory(dirname(target))
  crashpoint('release: exported')
}
