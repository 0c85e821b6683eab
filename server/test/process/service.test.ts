import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { startService } from '../../src/service.ts'
import { eventually, killWhatRunsIn, send, temporaryDirectory } from '../support/server.ts'

/** Tests the function that main.ts calls to start the service. Tests can call it in their own process. */

const configOn = (dataDir: string) => readConfig({ DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'silent' })

test('once started, it responds at its URL; once closed, its port and data directory are free for another in the same process', async () => {
  const dataDir = temporaryDirectory()
  const first = await startService(configOn(dataDir))
  const port = Number(new URL(first.url).port)
  expect(port).toBeGreaterThan(0)
  expect((await send(port, 'GET', '/readyz')).status).toBe(200)
  expect((await first.app.inject({ url: '/healthz', headers: { host: '127.0.0.1' } })).statusCode).toBe(200)
  await expect(startService(configOn(dataDir))).rejects.toThrow(`DATA_DIR: another instance is already using ${dataDir}`)

  await first.close()
  await expect(send(port, 'GET', '/healthz')).rejects.toMatchObject({ code: 'ECONNREFUSED' })

  const second = await startService(configOn(dataDir))
  expect((await send(Number(new URL(second.url).port), 'GET', '/readyz')).status).toBe(200)
  await second.close()
})

test('PORT 0: a node that the service starts before it listens gets the chosen port, not 0', async () => {
  const dataDir = temporaryDirectory()
  const nodes = join(dataDir, 'nodes')
  const callbacks = (): string[] =>
    readdirSync(nodes).flatMap(
      (name) => /^sandbox-callback=(.*)$/m.exec(readFileSync(join(nodes, name, 'phoenix.conf'), 'utf8'))?.[1] ?? [],
    )
  const first = await startService(configOn(dataDir))
  await eventually(() => callbacks()[0] === first.url, 'the treasury’s node to be started')
  await first.close()
  await killWhatRunsIn(dataDir)

  const second = await startService(configOn(dataDir))
  expect(second.url).not.toBe(first.url)
  await eventually(() => callbacks()[0] !== first.url, 'the node to be started again')
  expect(callbacks()).toEqual([second.url])
  await second.close()
})
