import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { freePort, startServer, temporaryDirectory } from '../server/test/support/server.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Not run: the service is already running, and `npm test` would run this test again. */
const NOT_TYPED = /^npm ci && npm (start|test)\n/gm

/** The output of all commands of a page, run from top to bottom, with the service and the shop on other ports. */
async function typed(page: string): Promise<string> {
  const server = await startServer({ store: 'embedded' })
  const directory = temporaryDirectory()
  for (const name of ['cli', 'examples', 'node_modules', 'package.json', 'sdk', 'tsconfig.base.json', 'tsconfig.json'])
    symlinkSync(join(root, name), join(directory, name))
  const shopPort = String(await freePort())
  const proxyPort = String(await freePort())
  const blocks = [...readFileSync(join(root, page), 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) => text)
  const script = blocks
    .join('\n')
    .replace(NOT_TYPED, '')
    .replaceAll('localhost:3000', `localhost:${shopPort}`)
    .replaceAll('localhost:8080', `localhost:${proxyPort}`)
  expect(script).not.toMatch(/\bnpm\b/)

  const env = {
    PATH: process.env.PATH,
    HOME: directory,
    DATA_DIR: server.dataDir,
    SERVICE_BASE_URL: `${server.url}/v1`,
    PORT: shopPort,
  }
  // Detached, so that what it leaves in the background can be ended as a group: `npx` does not pass signals on.
  const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', script], { cwd: directory, env, detached: true })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      printed += chunk
    })
  const closed = once(child, 'close')
  const [code] = await once(child, 'exit')
  endGroup(child.pid)
  await closed
  expect(code, printed).toBe(0)
  return printed
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid)
  } catch {
    // Every process of the group has exited.
  }
}

test('docs/quickstart.md: every line of it works, in this order', async () => {
  const printed = await typed('docs/quickstart.md')
  expect(printed).toMatch(/HTTP\/1\.1 402 Payment Required/)
  expect(printed).toMatch(/"joke":"A transaction walks into a bar/)
  expect(printed).toMatch(/"balanceSat": 10,/)
})

test('README.md: a first paid request is three lines of shell, and they work', async () => {
  const printed = await typed('README.md')
  expect(printed).toMatch(/"status": "paid",[\s\S]*"amountSat": 100,/)
})

const hasPython = spawnSync('python3', ['--version']).status === 0

test.skipIf(!hasPython)('docs/guides/charge-without-code.md: every line of it works, in this order', async () => {
  const printed = await typed('docs/guides/charge-without-code.md')
  expect(printed).toMatch(/HTTP\/1\.1 402 Payment Required/)
  expect(printed).toMatch(/HTTP\/1\.1 404 Not Found/)
  expect(printed).toMatch(/This is \/articles\/1, paid by pay_\w+\./)
})
