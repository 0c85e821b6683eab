import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Places } from '../../src/runtimes/process/places.ts'

const servers: Server[] = []
const directory = mkdtempSync(join(tmpdir(), 'boltyard-test-'))

afterEach(() => {
  for (const server of servers) server.close()
  rmSync(directory, { recursive: true, force: true })
})

test('C31: if other programs listen on every port of the range, a daemon gets none, and the message says which ports', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await expect(new Places(directory, undefined).freePort('node_a', { from: port, to: port })).rejects.toThrow(
    `no port from ${port} to ${port} is free`,
  )
})
