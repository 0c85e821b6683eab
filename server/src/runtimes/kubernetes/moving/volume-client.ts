import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { crashpoint } from '../../../platform/crashpoint.ts'
import { syncDirectory } from '../../../platform/data-dir.ts'
import { digestOfFile, type FileDigest } from '../../../platform/file-digest.ts'
import { DATABASE, INSTANCE } from './volume-server.ts'

/** The limit for one file of any size. */
const TRANSFER_TIMEOUT_MS = 600_000

/** The files of a volume, over the network. Each call names the server process that answered first; any other process refuses the call. */
export class Volume {
  readonly #url: string
  readonly #password: string
  readonly #instance: string

  private constructor(url: string, password: string, instance: string) {
    this.#url = url
    this.#password = password
    this.#instance = instance
  }

  /** Undefined: no connection yet. Any other failure, such as a refused password, is final. */
  static async open(url: string, password: string): Promise<Volume | undefined> {
    try {
      const { headers } = await call(url, 'GET', { authorization: `Bearer ${password}` })
      return new Volume(url, password, headers.get(INSTANCE) ?? '')
    } catch (error) {
      if (error instanceof TypeError) return undefined
      throw error
    }
  }

  async files(): Promise<FileDigest[]> {
    return (await (await this.#call('GET', '')).json()) as FileDigest[]
  }

  /** Afterwards the volume has these files of the directory and no others. Returns their digests, as read back from the volume. */
  async replaceFiles(directory: string, names: string[]): Promise<FileDigest[]> {
    await this.#call('DELETE', '')
    for (const name of names) {
      await this.#call('PUT', name, createReadStream(join(directory, name)))
      crashpoint('volume: a file is there')
    }
    return this.files()
  }

  /** Copies all files into a new directory, and compares them with what the volume has. */
  async copyTo(directory: string): Promise<void> {
    await mkdir(directory, { mode: 0o700 })
    const files = await this.files()
    if (!files.some(({ name }) => name.endsWith('.db'))) throw new Error('the volume has no channel database')
    for (const { name, sha256 } of files) {
      // The name becomes part of a path.
      if (!DATABASE.test(name)) throw new Error('the volume has a file that is not part of a channel database')
      const { body } = await this.#call('GET', name)
      if (!body) throw new Error(`the volume returned nothing for ${name}; try again`)
      const target = createWriteStream(join(directory, name), { mode: 0o600, flags: 'wx', flush: true })
      await pipeline(Readable.fromWeb(body as ReadableStream), target)
      if ((await digestOfFile(join(directory, name), name)).sha256 !== sha256)
        throw new Error(`${name} was damaged during the transfer; try again`)
    }
    syncDirectory(directory)
  }

  #call(method: string, name: string, content?: Readable): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#password}`, [INSTANCE]: this.#instance }
    return call(`${this.#url}/${name}`, method, headers, content)
  }
}

async function call(url: string, method: string, headers: Record<string, string>, content?: Readable): Promise<Response> {
  const response = await fetch(url, {
    method,
    headers,
    signal: AbortSignal.timeout(TRANSFER_TIMEOUT_MS),
    ...(content && { body: Readable.toWeb(content), duplex: 'half' }),
  } as RequestInit)
  if (response.ok) return response
  const reason = (await response.text()).slice(0, 100)
  throw new Error(`the volume refused ${method} with status ${response.status}${reason && `: ${reason}`}`)
}
