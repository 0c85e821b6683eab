import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeFileSync } from 'node:fs'

export const MAX_LOG_BYTES = 10_000_000
const KEPT_BYTES = 1_000_000

/** The standard output of a daemon. The file is in a directory where only the service can write. */
export class LogFile {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** A descriptor for the standard output of a new process. */
  open(): number {
    return openSync(this.path, 'a', 0o600)
  }

  append(line: string): void {
    writeFileSync(this.path, `${line}\n`, { flag: 'a', mode: 0o600 })
  }

  get isTooLarge(): boolean {
    return (this.#read((_, size) => size) ?? 0) > MAX_LOG_BYTES
  }

  /** Copied and truncated in place, because the process has the file open and keeps appending. */
  trim(): void {
    if (!this.isTooLarge) return
    const kept = this.tail(0, KEPT_BYTES)
    const descriptor = openSync(this.path, 'r+')
    ftruncateSync(descriptor)
    closeSync(descriptor)
    writeFileSync(this.path, kept ?? '', { flag: 'a' })
  }

  /** The last `maxBytes` bytes after `from`; undefined if the file is missing or ends before that offset. */
  tail(from: number, maxBytes: number): Buffer | undefined {
    return this.#read((descriptor, size) => {
      if (size < from) return undefined
      const length = Math.min(size - from, maxBytes)
      const bytes = Buffer.alloc(length)
      return bytes.subarray(0, readSync(descriptor, bytes, 0, length, size - length))
    })
  }

  #read<T>(work: (descriptor: number, size: number) => T): T | undefined {
    let descriptor: number
    try {
      descriptor = openSync(this.path, 'r')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    try {
      return work(descriptor, fstatSync(descriptor).size)
    } finally {
      closeSync(descriptor)
    }
  }
}
