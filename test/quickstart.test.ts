import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { freePort, startServer, temporaryDirectory } from '../server/test/harness.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What somebody types who reads the page from top to bottom; the service is running, and its port and the shop's are others. */
test('docs/quickstart.md: every line of it works, in this order', async () => {
  const server = await startServer()
  const directory = temporaryDirectory()
  for (const name of ['cli', 'examples', 'node_modules', 'package.json', 'sdk', 'tsconfig.base.json', 'tsconfig.json'])
    symlinkSync(join(root, name), join(directory, name))
  const shopPort = String(await freePort())
  const blocks = [...readFileSync(join(root, 'docs/quickstart.md'), 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)].map(
    ([, text = '']) => text,
  )
  expect(blocks[0]).toBe('npm ci && npm start\n')
  // Both packages are built by whoever runs the tests; built again here they would be missing for a moment to the tests beside this one.
  const script = blocks
    .slice(1)
    .join('\n')
    .replace('npm run --silent build -w sdk -w cli\n', '')
    .replaceAll('localhost:3000', `localhost:${shopPort}`)
  expect(script).not.toContain('npm run')

  const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', `trap 'kill $(jobs -p)' EXIT\n${script}`], {
    cwd: directory,
    env: {
      PATH: process.env.PATH,
      HOME: directory,
      DATA_DIR: server.dataDir,
      SERVICE_BASE_URL: `${server.url}/v1`,
      PORT: shopPort,
    },
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      printed += chunk
    })
  const [code] = await once(child, 'close')
  expect(printed).toMatch(/HTTP\/1\.1 402 Payment Required/)
  expect(printed).toMatch(/"joke":"A transaction walks into a bar/)
  expect(printed).toMatch(/"balanceSat": 10,/)
  expect(code).toBe(0)
}, 60_000)
