import { chmodSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PROCESS, type Server, startServer } from '../support/server.ts'

/** An embedded PostgreSQL that takes longer than 30 s to start, as when it recovers from a crash, or that never starts. */

async function stoppedServer(): Promise<Server> {
  const server = await startServer({ command: PROCESS, store: 'embedded', env: { NODE_PRICE_SAT_PER_DAY: '0' } })
  await server.stop()
  return server
}

/** Replaces the program of PostgreSQL with a script that runs these lines first. */
function before({ dataDir }: Server, script: string): void {
  const software = join(dataDir, 'software')
  const directory = join(software, readdirSync(software).find((name) => name.startsWith('postgres-')) ?? '', 'bin')
  const program = join(directory, 'postgres')
  renameSync(program, `${program}.real`)
  writeFileSync(program, `#!/bin/sh\n${script}\nexec "$0.real" "$@"\n`)
  chmodSync(program, 0o755)
}

describe.concurrent('at the start of the service, PostgreSQL', () => {
  test('takes long: the service waits, says so, and is ready when PostgreSQL is', async () => {
    const server = await stoppedServer()
    before(server, 'sleep 32')
    await server.start()
    expect(server.stderr).toMatch(/^still waiting for PostgreSQL to accept connections; its log is \/.+$/m)
    expect((await server.send('GET', '/readyz')).status).toBe(200)
  })

  test('exits each time: the service gives up after 30 s, and says where to look', async () => {
    const server = await stoppedServer()
    before(server, 'exit 1')
    await server.launch()
    expect(await server.exited).toMatchObject({ code: 1 })
    expect(server.stderr).toMatch(/^PostgreSQL did not start within 30 s; its log is \/.+$/m)
  })
})
