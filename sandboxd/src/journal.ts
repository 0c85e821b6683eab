import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { reasonOf, StartFault } from './start-fault.ts'

/** A record could not be written, for example because the disk is full. Nothing of it is on disk, so the caller may retry. */
export class JournalUnavailable extends Error {}

type Waiting<R> = { records: R[]; resolve: () => void; reject: (error: Error) => void }

export type JournalOwner<R> = {
  /** Written into the first line, so that a file of another node or for another purpose is refused. */
  identity: string
  /** Called once for every durable record, in file order, before the writer's promise resolves. Memory is never ahead of the disk. */
  apply: (record: R) => void
  /** The minimal records that rebuild the current state. */
  compact: () => R[]
  log: (line: string) => void
}

/** How many more records than its compact form a file may have before the next start compacts it. */
const REWRITE_AFTER_RECORDS = 1000
const RETRY_MS = 1_000

/**
 * An append-only file of checksummed lines. Each line is an array of records that are applied atomically.
 *
 * After kill -9 or a power cut, the last line may lack its newline. It was never acknowledged, so it is dropped. A complete line with a
 * wrong checksum was acknowledged and cannot be the result of a crash. The daemon then refuses to start, because continuing would lose a
 * payment.
 */
export class Journal<R> {
  readonly #path: string
  readonly #owner: JournalOwner<R>
  readonly #file: FileHandle
  #size: number
  #queue: Waiting<R>[] = []
  #flushing: Promise<void> | undefined
  #closed = false

  private constructor(path: string, owner: JournalOwner<R>, file: FileHandle, size: number) {
    this.#path = path
    this.#owner = owner
    this.#file = file
    this.#size = size
  }

  static async open<R>(path: string, owner: JournalOwner<R>): Promise<Journal<R>> {
    try {
      const bytes = await readExisting(path)
      const end = bytes.lastIndexOf(0x0a) + 1
      if (bytes.length === 0) {
        await replaceDurably(path, lineOf([header(owner.identity)]))
      } else {
        if (end === 0) throw corrupt(path, 1, 0)
        const count = replay(path, bytes.subarray(0, end), owner)
        if (end < bytes.length) owner.log(`dropped an unfinished record of ${bytes.length - end} bytes at the end of ${path}`)
        if (end < bytes.length) await truncateDurably(path, end)
        const compact = owner.compact()
        if (count > compact.length + REWRITE_AFTER_RECORDS) await rewrite(path, owner, compact)
      }
      const file = await open(path, 'r+')
      return new Journal(path, owner, file, (await file.stat()).size)
    } catch (error) {
      if (error instanceof StartFault) throw error
      throw new StartFault(`cannot open ${path}: ${reasonOf(error)}`)
    }
  }

  /** Resolves when the records are on disk and applied. After a crash, either all or none of them exist. */
  append(...records: R[]): Promise<void> {
    if (this.#closed) return Promise.reject(new JournalUnavailable('the daemon is shutting down'))
    return new Promise((resolve, reject) => {
      this.#queue.push({ records, resolve, reject })
      this.#flushing ??= this.#flush()
    })
  }

  /** Like `append`, but retries while the disk is full, for records that must not be lost. */
  async appendEventually(stop: AbortSignal, ...records: R[]): Promise<void> {
    for (;;) {
      try {
        return await this.append(...records)
      } catch (error) {
        if (!(error instanceof JournalUnavailable)) throw error
        this.#owner.log(`${error.message}; trying again`)
        await pause(RETRY_MS, undefined, { signal: stop, ref: false })
      }
    }
  }

  /** All writers that arrive during an fsync share the next one, so each waits for at most two fsyncs. */
  async #flush(): Promise<void> {
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#queue
      this.#queue = []
      // One line for the whole batch: a power cut can leave holes in unsynced data, and the checksum must then fail for all of it.
      const line = lineOf(batch.flatMap((waiting) => waiting.records))
      try {
        await this.#write(line)
      } catch (error) {
        for (const waiting of batch) waiting.reject(new JournalUnavailable(`cannot write the journal: ${reasonOf(error)}`))
        continue
      }
      for (const waiting of batch) {
        for (const record of waiting.records) this.#owner.apply(record)
        waiting.resolve()
      }
    }
    // Cleared in the same tick in which the queue was found empty. Otherwise an append could rely on a flush that has ended.
    this.#flushing = undefined
  }

  async #write(bytes: Buffer): Promise<void> {
    try {
      for (let done = 0; done < bytes.length; ) {
        done += (await this.#file.write(bytes, done, bytes.length - done, this.#size + done)).bytesWritten
      }
    } catch (error) {
      await this.#orDie('remove a half-written record from', async () => {
        await this.#file.truncate(this.#size)
        await this.#file.datasync()
      })
      throw error
    }
    await this.#orDie('sync', () => this.#file.datasync())
    this.#size += bytes.length
  }

  /** After a failed fsync, the content of the disk is unknown. Exit, so that the next start reads it again. */
  async #orDie(act: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      process.stderr.write(`fatal: cannot ${act} ${this.#path}: ${reasonOf(error)}\n`)
      process.exit(1)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#flushing
    await this.#file.close()
  }
}

function header(identity: string): { journal: string } {
  return { journal: identity }
}

function lineOf(records: unknown[]): Buffer {
  const json = JSON.stringify(records)
  return Buffer.from(`${crc32(json).toString(16).padStart(8, '0')} ${json}\n`)
}

function compactForm(identity: string, records: unknown[]): Buffer {
  return Buffer.concat([header(identity), ...records].map((record) => lineOf([record])))
}

function replay<R>(path: string, bytes: Buffer, owner: JournalOwner<R>): number {
  let count = 0
  let lineNumber = 0
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(0x0a, start)
    lineNumber++
    const records = readLine(bytes.subarray(start, end))
    if (!records) throw corrupt(path, lineNumber, start)
    if (lineNumber === 1) {
      const identity = (records[0] as { journal?: unknown } | undefined)?.journal
      if (identity !== owner.identity) throw new StartFault(`${path} is not the journal of ${owner.identity}`)
    } else {
      for (const record of records) owner.apply(record as R)
      count += records.length
    }
    start = end + 1
  }
  return count
}

function corrupt(path: string, lineNumber: number, byte: number): StartFault {
  return new StartFault(
    `${path} is corrupt at line ${lineNumber} (byte ${byte}). Nothing was changed. Restore the file from a copy; starting without that line would forget payments.`,
  )
}

function readLine(line: Buffer): unknown[] | undefined {
  const json = line.subarray(9)
  if (line[8] !== 0x20 || line.toString('latin1', 0, 8) !== crc32(json).toString(16).padStart(8, '0')) return undefined
  const records: unknown = JSON.parse(json.toString('utf8'))
  return Array.isArray(records) ? records : undefined
}

async function readExisting(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

async function truncateDurably(path: string, size: number): Promise<void> {
  const file = await open(path, 'r+')
  await file.truncate(size)
  await file.datasync()
  await file.close()
}

/** If compaction fails on a full disk, continue with the long file. */
async function rewrite<R>(path: string, owner: JournalOwner<R>, compact: R[]): Promise<void> {
  try {
    await replaceDurably(path, compactForm(owner.identity, compact))
  } catch (error) {
    await rm(`${path}.new`, { force: true })
    owner.log(`kept ${path} as it is, could not write its compact form: ${reasonOf(error)}`)
  }
}

/** After a crash, either the old or the new file exists, never a mixture. */
async function replaceDurably(path: string, bytes: Buffer): Promise<void> {
  const file = await open(`${path}.new`, 'w', 0o600)
  await file.writeFile(bytes)
  await file.sync()
  await file.close()
  await rename(`${path}.new`, path)
  const directory = await open(dirname(path), 'r')
  await directory.sync()
  await directory.close()
}
