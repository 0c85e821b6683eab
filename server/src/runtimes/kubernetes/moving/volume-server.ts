import { randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, lstatSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { syncDirectory } from '../../../platform/data-dir.ts'
import { digestOfFile, type FileDigest } from '../../../platform/file-digest.ts'
import { primitives } from '../../../platform/primitives.ts'
import { StartFault } from '../../../platform/start-fault.ts'

/** The channel database, and what SQLite keeps beside it. Nothing else is moved: seed and configuration are in the node's Secret. */
export const DATABASE = /^phoenix\.[a-z0-9]+\.[0-9a-f]{6}\.db(-wal|-journal)?$/
/** Proof that a daemon has run on the volume: a move never writes this file. */
const LOG = 'phoenix.log'
/** Identifies the server process. A different value means that another process has had the volume in between. */
export const INSTANCE = 'x-instance'

export type VolumeServerOptions = { directory: string; password: string; isWritable: boolean }
type Serving = VolumeServerOptions & { instance: string }

/**
 * Runs beside the volume of a node, in place of its daemon, while a wallet is moved in or out. It lists, sends and receives the files of the
 * channel database.
 */
export function volumeServer(options: VolumeServerOptions): Server {
  const serving = { ...options, instance: randomUUID() }
  return createServer((request, response) => {
    answer(serving, request, response).catch((error: unknown) => {
      const code = (error as NodeJS.ErrnoException).code ?? 'error'
      process.stderr.write(`${code}: ${request.method} failed\n`)
      // Break the connection, so that a file that was sent in part is not taken for the whole file.
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end(code)
    })
  })
}

async function answer(
  { directory, password, isWritable, instance }: Serving,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const refuse = (status: number, reason = ''): void => void response.writeHead(status).end(reason)
  if (!primitives.isEqual(request.headers.authorization ?? '', `Bearer ${password}`)) return refuse(401)
  const { method, url = '/' } = request
  const name = url.slice(1)
  if (name !== '' && !DATABASE.test(name)) return refuse(404)
  if (method !== 'GET' && !isWritable) return refuse(405)
  // What the caller has checked holds only while the same process has the volume: in between, a daemon may have used it.
  const given = request.headers[INSTANCE]
  if (given !== instance && (given !== undefined || method !== 'GET' || name !== ''))
    return refuse(409, 'another process has the volume now')
  if (method === 'GET' && name === '') {
    const headers = { 'content-type': 'application/json', [INSTANCE]: instance }
    response.writeHead(200, headers).end(JSON.stringify(await filesIn(directory)))
    return
  }
  if (method === 'GET') {
    if (!databasesIn(directory).includes(name)) return refuse(404)
    response.writeHead(200, { 'content-length': lstatSync(join(directory, name)).size })
    return pipeline(createReadStream(join(directory, name)), response)
  }
  if (existsSync(join(directory, LOG)))
    return refuse(409, 'a daemon has already run on this volume, so the data there may be newer than the copy')
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

function filesIn(directory: string): Promise<FileDigest[]> {
  return Promise.all(databasesIn(directory).map((name) => digestOfFile(join(directory, name), name)))
}

/** The password in phoenix.conf, the only file of the node's Secret that the pod is given. */
export function passwordIn(conf: string): string {
  const password = /^http-password=(.+)$/m.exec(conf)?.[1]
  if (password === undefined) throw new StartFault(78, 'phoenix.conf has no password')
  return password
}
