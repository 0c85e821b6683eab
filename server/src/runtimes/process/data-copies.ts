import { createHash } from 'node:crypto'
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { crashpoint } from '../../platform/crashpoint.ts'
import { copyTree, isSameTree, removeTree } from '../../platform/trees.ts'

/**
 * Files that are ignored in a comparison: we write them, or they change at every start, and they say nothing about the channels. An empty
 * write-ahead log is ignored too.
 */
const isBesideTheData = (name: string, bytes: number): boolean =>
  ['phoenix.conf', '.lock', 'sandboxd.lock'].includes(name) ||
  /^phoenix\.log/.test(name) ||
  /-shm$/.test(name) ||
  (/-wal$/.test(name) && bytes === 0)

const UNFINISHED = '.unfinished'
/** The longest name that file systems allow. */
const MAX_NAME = 255
/** Enough to recognize the version. The hash tells versions with the same beginning apart. */
const MAX_READABLE = 100

/**
 * Never the same for another version, and never that of another version's unfinished copy. Nearly every version is part of the name as
 * it is, and must stay so, or existing copies would not be found. Any other is changed and followed by `+` and a hash.
 */
function copyName(nodeId: string, version: string): string {
  const name = `${nodeId}.before-update-from-${version}`
  const isPlain = /^[\w.-]+$/.test(version) && !version.endsWith(UNFINISHED)
  if (isPlain && name.length + UNFINISHED.length <= MAX_NAME) return name
  const readable = version.slice(0, MAX_READABLE).replace(/[^\w.-]/g, '_')
  const hash = createHash('sha256').update(version).digest('hex').slice(0, 12)
  return `${nodeId}.before-update-from-${readable}+${hash}`
}

/** Copies of a node's data, made before an update. */
export class DataCopies {
  readonly #nodes: string

  constructor(nodes: string) {
    this.#nodes = nodes
  }

  #directory(nodeId: string): string {
    return join(this.#nodes, nodeId)
  }

  #copy(nodeId: string, version: string): string {
    return join(this.#nodes, copyName(nodeId, version))
  }

  #aside(nodeId: string): string {
    return `${this.#directory(nodeId)}.failed-update`
  }

  async keep(nodeId: string, version: string): Promise<void> {
    const copy = this.#copy(nodeId, version)
    if (existsSync(copy)) return
    const unfinished = `${copy}${UNFINISHED}`
    await removeTree(unfinished)
    await copyTree(this.#directory(nodeId), unfinished)
    crashpoint('copy: unfinished')
    renameSync(unfinished, copy)
    crashpoint('copy: kept')
  }

  /** Whether the data is exactly what it was before the update; false if that cannot be proven. */
  async isUntouched(nodeId: string, version: string): Promise<boolean> {
    const copy = this.#copy(nodeId, version)
    // The service restored the copy and died before recording that. The data has not been used since, so it equals the copy.
    if (!existsSync(copy)) return existsSync(this.#aside(nodeId))
    return isSameTree(this.#directory(nodeId), copy, isBesideTheData)
  }

  /** Called before any version touches the data again. The data set aside by the restore is no longer needed. */
  async forgetRestore(nodeId: string): Promise<void> {
    await removeTree(this.#aside(nodeId))
  }

  async restore(nodeId: string, version: string): Promise<void> {
    const [copy, directory] = [this.#copy(nodeId, version), this.#directory(nodeId)]
    // Already restored, but the service died before recording that.
    if (!existsSync(copy)) return
    const aside = this.#aside(nodeId)
    if (existsSync(directory)) {
      await removeTree(aside)
      renameSync(directory, aside)
      crashpoint('restore: the new data is aside')
    }
    renameSync(copy, directory)
    crashpoint('restore: the old data is back')
  }

  /** Completes a restore that a crash interrupted between its two renames. Otherwise the node's data would count as lost. */
  finishRestoring(nodeId: string, version: string): void {
    const [copy, directory] = [this.#copy(nodeId, version), this.#directory(nodeId)]
    if (!existsSync(directory) && existsSync(this.#aside(nodeId)) && existsSync(copy)) renameSync(copy, directory)
  }

  async removeAll(nodeId: string): Promise<void> {
    for (const name of existsSync(this.#nodes) ? readdirSync(this.#nodes) : [])
      if (name.startsWith(`${nodeId}.`)) await removeTree(join(this.#nodes, name))
  }
}
