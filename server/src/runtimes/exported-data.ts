import { existsSync, renameSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { crashpoint } from '../platform/crashpoint.ts'
import { syncDirectory } from '../platform/data-dir.ts'
import { removeTree } from '../platform/trees.ts'

/**
 * Writes a wallet into a new directory that only we can read; `fill` creates it with its contents. The directory is complete or absent, so
 * the call can be repeated after a crash: until it is complete, its name ends with the id of the release, which no other directory has.
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
