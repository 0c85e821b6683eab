import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'

/** A file as it was read from the disk. */
export type FileDigest = { name: string; bytes: number; sha256: string }

export async function digestOfFile(path: string, name: string): Promise<FileDigest> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path)) {
    hash.update(chunk as Buffer)
    bytes += (chunk as Buffer).length
  }
  return { name, bytes, sha256: hash.digest('hex') }
}
