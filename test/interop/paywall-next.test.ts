import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fetchWithL402 } from '@getalby/lightning-tools/402'
import { expect, test } from 'vitest'
import { pack } from '../../sdk/test/packed.ts'
import { Market } from '../../sdk/test/paywall-harness.ts'
import { eventually, freePort, temporaryDirectory } from '../../server/test/support/server.ts'

/**
 * The example on a real Next server, built and started as its users do. Next is 340 MB large, so it is not a dependency: this test installs
 * it into an empty directory, which takes a minute and needs a registry. `FULL=1 npm test -- test/interop/paywall-next.test.ts`
 */
const root = fileURLToPath(new URL('../..', import.meta.url))

test.skipIf(!process.env.FULL)(
  'Next: a route handler builds without a key, and sells to a real client',
  async () => {
    const directory = temporaryDirectory()
    const run = (file: string, ...args: string[]): string =>
      execFileSync(file, args, { cwd: directory, env: { ...bare, NEXT_TELEMETRY_DISABLED: '1' }, encoding: 'utf8' })
    const { SERVICE_API_KEY: _key, NODE_ENV: _env, ...bare } = process.env
    writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true }))
    // Next would install the last three itself, but not with CI=true.
    const packages = ['next@16', 'react@19', 'react-dom@19', 'typescript@5', '@types/react@19', '@types/node@20']
    run('npm', 'install', '--no-audit', '--no-fund', ...packages, pack('sdk', directory))
    cpSync(join(root, 'examples/next-joke'), directory, { recursive: true })
    writeFileSync(join(directory, 'next.config.mjs'), 'export default { typescript: { ignoreBuildErrors: true } }\n')
    run('node_modules/.bin/next', 'build')

    const market = await Market.open()
    const port = await freePort()
    const env = {
      ...bare,
      SERVICE_API_KEY: market.owner.key.key,
      SERVICE_BASE_URL: `${market.server.url}/v1`,
      NODE_ID: market.node.node.id,
    }
    const next = spawn(process.execPath, ['node_modules/next/dist/bin/next', 'start', '-p', String(port)], {
      cwd: directory,
      env,
    })
    try {
      const url = `http://127.0.0.1:${port}/api/joke`
      await eventually(async () => (await fetch(url)).status === 402, 'Next to serve')
      const answer = await fetchWithL402(url, {}, { wallet: market.wallet })
      expect([answer.status, await answer.json()]).toEqual([200, { joke: expect.any(String) }])
      expect([answer.headers.get('cache-control'), market.paid]).toEqual(['private', 1])
    } finally {
      next.kill()
      await once(next, 'close')
    }
  },
  1_200_000,
)
