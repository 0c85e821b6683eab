import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Places } from '../../src/runtimes/process/places.ts'

const servers: Server[] = []
const directory = mkdtempSync(join(tmpdir(), 'boltyard-test-'))
mkdirSync(join(directory, 'run'))

afterEach(() => {
  for (const server of servers) server.close()
  rmSync(directory, { recursive: true, force: true })
})

async function listen(port: number): Promise<number> {
  const server = createServer().listen(port, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** The first of two ports next to each other, on both of which this process listens. */
async function twoTakenPorts(): Promise<number> {
  for (;;) {
    const port = await listen(0)
    try {
      await listen(port + 1)
      return port
    } catch {
      // Another program has the second port.
    }
  }
}

test('if other programs listen on every port of the range, a daemon gets none, and the message says which ports', async () => {
  const from = await twoTakenPorts()
  const range = { from, to: from + 1 }
  await expect(new Places(directory, undefined).freePort('node_a', range)).rejects.toThrow(
    `no port from ${range.from} to ${range.to} is free`,
  )
})
