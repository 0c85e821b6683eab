import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { eventually, freePort, type Server, startServer, temporaryDirectory } from '../server/test/support/server.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Not run: the service is already running, and `npm test` would run this test again. */
const NOT_TYPED = /^npm ci && npm (start|test)\n/gm

type Typed = { printed: string; server: Server }

/**
 * Runs all commands of a page from top to bottom, with the service and the shop on other ports. What they start in the background must be
 * stopped by the page too.
 */
async function typed(page: string): Promise<Typed> {
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
  // Detached, so that what a failed page leaves in the background can be ended as a group.
  const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', script], { cwd: directory, env, detached: true })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk) => {
      printed += chunk
    })
  let isClosed = false
  child.once('close', () => {
    isClosed = true
  })
  const [code] = await once(child, 'exit')
  try {
    expect(code, printed).toBe(0)
    await eventually(() => isClosed, `the end of what ${page} started`)
  } finally {
    endGroup(child.pid)
  }
  return { printed, server }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid)
  } catch {
    // Every process of the group has exited.
  }
}

test('docs/quickstart.md: every line of it works, in this order', async () => {
  const { printed, server } = await typed('docs/quickstart.md')
  expect(printed).toMatch(/HTTP\/1\.1 402 Payment Required/)
  expect(printed).toMatch(/"joke":"A transaction walks into a bar/)
  expect(printed).toMatch(/"balanceSat": 10,/)
  // Two requests without a payment, and two protocols: waiting for the shop leaves no challenge.
  const { payments } = (await server.send('GET', '/v1/gateway/payments', { token: server.firstRun.apiKey })).json()
  const unpaid = 'payment_required'
  expect(payments.map(({ status }: { status: string }) => status).sort()).toEqual(['paid', unpaid, unpaid, unpaid])
})

test('README.md: a first paid request is three lines of shell, and they work', async () => {
  const { printed } = await typed('README.md')
  expect(printed).toMatch(/"status": "paid",[\s\S]*"amountSat": 100,/)
})

const hasPython = spawnSync('python3', ['--version']).status === 0

test.skipIf(!hasPython)('docs/guides/charge-without-code.md: every line of it works, in this order', async () => {
  const { printed } = await typed('docs/guides/charge-without-code.md')
  expect(printed).toMatch(/HTTP\/1\.1 402 Payment Required/)
  expect(printed).toMatch(/HTTP\/1\.1 404 Not Found/)
  expect(printed).toMatch(/This is \/articles\/1, paid by pay_\w+\./)
})
