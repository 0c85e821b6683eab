import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, lstatSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { syncDirectory } from '../../../platform/data-dir.ts'
import { primitives } from '../../../platform/primitives.ts'
import { StartFault } from '../../../platform/start-fault.ts'

/** A file of a volume, as the server has read it back from the disk. */
export type VolumeFile = { name: string; bytes: number; sha256: string }

/** The channel database, and what SQLite keeps beside it. Nothing else is moved: seed and configuration are in the node's Secret. */
const DATABASE = /^phoenix\.[a-z0-9]+\.[0-9a-f]{6}\.db(-wal|-journal)?$/

export type VolumeServerOptions = { directory: string; password: string; isWritable: boolean }

/**
 * Runs beside the volume of a node, in place of its daemon, while a wallet is moved in or out. It lists, sends and receives the files of the
 * channel database.
 */
export function volumeServer(options: VolumeServerOptions): Server {
  return createServer((request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      // Of a file that is only half sent or received, nothing may be taken for the whole.
      process.stderr.write(`${(error as NodeJS.ErrnoException).code ?? 'error'}: ${request.method} failed\n`)
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end()
    })
  })
}

async function answer(
  { directory, password, isWritable }: VolumeServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const refuse = (status: number): void => void response.writeHead(status).end()
  if (!primitives.isEqual(request.headers.authorization ?? '', `Bearer ${password}`)) return refuse(401)
  const { method, url = '/' } = request
  const name = url.slice(1)
  if (name !== '' && !DATABASE.test(name)) return refuse(404)
  if (method === 'GET' && name === '') {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(await filesIn(directory)))
    return
  }
  if (method === 'GET') {
    if (!databasesIn(directory).includes(name)) return refuse(404)
    response.writeHead(200, { 'content-length': lstatSync(join(directory, name)).size })
    return pipeline(createReadStream(join(directory, name)), response)
  }
  if (!isWritable) return refuse(405)
  if (method === 'DELETE' && name === '') {
    for (const one of databasesIn(directory)) rmSync(join(directory, one))
    syncDirectory(directory)
    return refuse(204)
  }
  if (method !== 'PUT' || name === '') return refuse(405)
  const part = join(directory, `${name}.part`)
  await pipeline(request, createWriteStream(part, { mode: 0o600, flush: true }))
  if (!request.complete) return refuse(400)
  renameSync(part, join(directory, name))
  syncDirectory(directory)
  refuse(204)
}

const databasesIn = (directory: string): string[] =>
  readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isFile() && DATABASE.test(entry.name))
    .map(({ name }) => name)
    .sort()

function filesIn(directory: string): Promise<VolumeFile[]> {
  return Promise.all(databasesIn(directory).map((name) => fileAt(join(directory, name), name)))
}

export async function fileAt(path: string, name: string): Promise<VolumeFile> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path)) {
    hash.update(chunk as Buffer)
    bytes += (chunk as Buffer).length
  }
  return { name, bytes, sha256: hash.digest('hex') }
}

/** Of the phoenix.conf in the node's Secret: the pod is given no other secret. */
export function passwordIn(conf: string): string {
  const password = /^http-password=(.+)$/m.exec(conf)?.[1]
  if (password === undefined) throw new StartFault(78, 'phoenix.conf has no password')
  return password
}
