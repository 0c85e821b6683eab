import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { crashpoint } from '../../platform/crashpoint.ts'
import { serviceDirectory, syncDirectory, writeSecretFile } from '../../platform/data-dir.ts'
import { newId } from '../../platform/ids.ts'
import { StartFault } from '../../platform/start-fault.ts'
import { copyFiles, removeTree } from '../../platform/trees.ts'

/** A directory, with what identifies it if it is renamed. */
export type Source = { path: string; dev: string; ino: string }
export type AdoptionRecord = { nodeId: string; source: Source }
export type WalletFiles = { from: string; names: string[]; texts: Record<string, string> }

/**
 * Puts the data of an existing wallet where its node will look for it, before the node exists. The id of the node is recorded first, so that
 * a repeated call removes what an interrupted one has left.
 */
export class AdoptedData {
  readonly #records: string
  readonly #nodes: string
  readonly #dataDir: string

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#records = join(dataDir, 'adopting')
    this.#nodes = join(dataDir, 'nodes')
    for (const directory of [this.#records, this.#nodes]) mkdirSync(directory, { recursive: true, mode: 0o700 })
    syncDirectory(dataDir)
  }

  /** What an interrupted call has recorded. */
  recorded(lightningId: string): AdoptionRecord | undefined {
    const path = join(this.#records, lightningId)
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as AdoptionRecord) : undefined
  }

  /** Must be called before the source is changed. */
  record(lightningId: string, { path, dev, ino }: Source, nodeId = newId('node')): string {
    const record: AdoptionRecord = { nodeId, source: { path, dev, ino } }
    writeSecretFile(join(this.#records, lightningId), JSON.stringify(record))
    crashpoint('adopt: the id is chosen')
    return nodeId
  }

  /** Whether a node with this id has its data in this directory. */
  isDataOf(nodeId: string, { dev, ino }: Source): boolean {
    const stat = statSync(join(this.#nodes, nodeId), { bigint: true, throwIfNoEntry: false })
    return stat !== undefined && String(stat.dev) === dev && String(stat.ino) === ino
  }

  /** Throws if the node has run since. A database restored from an older backup may not know the node, but its data is newer. */
  requireNotRun(nodeId: string): void {
    if (existsSync(join(serviceDirectory(this.#dataDir), nodeId)))
      throw new StartFault(
        78,
        `${nodeId} has run since it adopted this wallet, so its data in ${join(this.#nodes, nodeId)} is newer; adopt that directory`,
      )
  }

  /** Must only be called while no node has this id. */
  async copy(nodeId: string, source: Source, { from, names, texts }: WalletFiles): Promise<void> {
    if (this.isDataOf(nodeId, source)) throw new Error(`${source.path} cannot be copied to itself`)
    const staging = this.#staging(nodeId)
    await removeTree(staging)
    await removeTree(join(this.#nodes, nodeId))
    await copyFiles(from, staging, names)
    for (const [name, text] of Object.entries(texts)) writeSecretFile(join(staging, name), text)
    crashpoint('adopt: copied')
  }

  place(nodeId: string): void {
    renameSync(this.#staging(nodeId), join(this.#nodes, nodeId))
    syncDirectory(this.#nodes)
    crashpoint('adopt: in place')
  }

  /** Called once the node exists. */
  forget(lightningId: string): void {
    rmSync(join(this.#records, lightningId), { force: true })
  }

  #staging(nodeId: string): string {
    return join(this.#nodes, `${nodeId}.adopting`)
  }
}
