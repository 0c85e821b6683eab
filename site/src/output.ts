import { mkdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** A smaller file fits into one packet even without compression. */
const WORTH_COMPRESSING_BYTES = 1_000
/** The highest quality makes files 4 % smaller and takes four times as long, at every `npm start`. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }

/** Compressed copies (`x.br`, `x.gz`) are written once, so the server need not compress each response. WOFF2 is already compressed. */
export async function writeFiles(directory: string, files: ReadonlyMap<string, string | Uint8Array>): Promise<void> {
  for (const folder of new Set([...files.keys()].map((name) => dirname(name))))
    mkdirSync(join(directory, folder), { recursive: true })
  await Promise.all(
    [...files].map(async ([name, text]) => {
      const path = join(directory, name)
      const content = Buffer.from(text)
      await writeFile(path, content)
      if (content.length < WORTH_COMPRESSING_BYTES || name.endsWith('.woff2')) return
      const [br, gz] = await Promise.all([promisify(brotliCompress)(content, BROTLI), promisify(gzip)(content, { level: 9 })])
      await Promise.all([writeFile(`${path}.br`, br), writeFile(`${path}.gz`, gz)])
    }),
  )
}
