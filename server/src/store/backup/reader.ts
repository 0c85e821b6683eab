import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { StartFault } from '../../platform/start-fault.ts'
import { END_OF_TABLE, type Head, type Table, type Totals } from './format.ts'

const NEWLINE = 0x0a
/** The longest row we store is far shorter. */
const MAX_LINE_BYTES = 64 * 1024 * 1024
const END = Buffer.from(`${END_OF_TABLE}\n`)

export const damaged = (): StartFault => new StartFault(1, 'the backup is damaged or incomplete')

/** Reads a backup from start to end. Throws a `StartFault` for anything that is not a backup. */
export class BackupReader {
  readonly #lines: AsyncIterator<Buffer>

  constructor(input: Readable) {
    this.#lines = linesOf(input)
  }

  async head(): Promise<Head> {
    const head = await this.#json().catch(() => undefined)
    if (head?.boltyardBackup === undefined) throw new StartFault(1, 'this file is not a Boltyard backup')
    if (head.boltyardBackup !== 1)
      throw new StartFault(78, 'this backup was made by a newer version of Boltyard; restore it with that version')
    if (!Number.isSafeInteger(head.schema) || typeof head.createdAt !== 'string') throw damaged()
    if (head.migrations !== undefined && !Array.isArray(head.migrations)) throw damaged()
    return head as Head
  }

  /** The next table, whose rows must be read before anything else; or the totals, after which the file must end. */
  async next(): Promise<Table | Totals> {
    const part = await this.#json()
    if (typeof part.table === 'string' && Array.isArray(part.columns)) return part as Table
    if (!isRecord(part.rows) || !isRecord(part.sequences)) throw damaged()
    if (!(await this.#lines.next()).done) throw damaged()
    return part as Totals
  }

  async *rows(): AsyncGenerator<Buffer> {
    for (;;) {
      const row = await this.#line()
      if (row.equals(END)) return
      yield row
    }
  }

  // biome-ignore lint/suspicious/noExplicitAny: whatever is in the file
  async #json(): Promise<Record<string, any>> {
    try {
      const value: unknown = JSON.parse((await this.#line()).toString('utf8'))
      if (isRecord(value)) return value
    } catch (error) {
      if (error instanceof StartFault) throw error
    }
    throw damaged()
  }

  async #line(): Promise<Buffer> {
    const { done, value } = await this.#lines.next()
    if (done) throw damaged()
    return value
  }
}

// biome-ignore lint/suspicious/noExplicitAny: whatever is in the file
const isRecord = (value: unknown): value is Record<string, any> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Each line includes its newline. */
async function* linesOf(input: Readable): AsyncGenerator<Buffer> {
  const unzipped = pipeline(input, createGunzip(), () => undefined)
  let rest: Buffer[] = []
  let restBytes = 0
  try {
    for await (const chunk of unzipped as AsyncIterable<Buffer>) {
      let start = 0
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
        yield Buffer.concat([...rest, chunk.subarray(start, end + 1)])
        rest = []
        restBytes = 0
        start = end + 1
      }
      rest.push(chunk.subarray(start))
      restBytes += chunk.length - start
      if (restBytes > MAX_LINE_BYTES) throw damaged()
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // zlib's codes; the others are about the file, such as EACCES.
    throw code?.startsWith('Z_') ? damaged() : error
  }
  if (restBytes > 0) throw damaged()
}
