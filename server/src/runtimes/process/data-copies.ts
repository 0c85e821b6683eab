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
    return join(this.#nodes, `${nodeId}.before-update-from-${version.replace(/[^\w.-]/g, '_')}`)
  }

  #aside(nodeId: string): string {
    return `${this.#directory(nodeId)}.failed-update`
  }

  async keep(nodeId: string, version: string): Promise<void> {
    const copy = this.#copy(nodeId, version)
    if (existsSync(copy)) return
    await removeTree(`${copy}.unfinished`)
    await copyTree(this.#directory(nodeId), `${copy}.unfinished`)
    crashpoint('copy: unfinished')
    renameSync(`${copy}.unfinished`, copy)
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
