import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Server, startServer } from '../../server/test/support/server.ts'

/**
 * Clients that two independent generators create from the document the service serves. The generators are not our dependencies: `.ci/run`
 * installs them into `test/generators/`.
 */
const here = fileURLToPath(new URL('../generators/', import.meta.url))
const root = fileURLToPath(new URL('../..', import.meta.url))
const dist = join(here, 'dist')
const python = join(here, '.venv/bin/python')
const bin = (name: string): string => join(here, 'node_modules/.bin', name)

const run = async (file: string, args: string[], env: Record<string, string> = {}): Promise<string> => {
  const options = { cwd: here, env: { ...process.env, ...env } }
  const { stdout } = await promisify(execFile)(file, args, options).catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`${file}: ${error.stdout}${error.stderr}`)
  })
  return stdout
}

/** Skipped with a message if the generator is not installed; with CI=true, that is a failure. */
function generatedBy(generator: string, program: string, tests: () => void): void {
  const isWanted = existsSync(program) || process.env.CI === 'true'
  if (!isWanted) process.stderr.write(`\n### SKIPPED: clients by ${generator}: .ci/run installs it into test/generators ###\n\n`)
  describe.skipIf(!isWanted)(generator, tests)
}

let server: Server
let env: Record<string, string>
beforeAll(async () => {
  server = await startServer()
  const { key } = await server.newKey(['nodes:write', 'gateway:write'])
  env = { BASE_URL: server.url, API_KEY: key, PYTHONPATH: dist }
  rmSync(dist, { recursive: true, force: true })
  mkdirSync(dist)
  writeFileSync(join(dist, 'openapi.json'), (await server.send('GET', '/openapi.json')).text)
})

function expectSale(output: string, name: string): void {
  expect(JSON.parse(output)).toEqual({
    node: { name, status: 'ready' },
    payment: { protocol: 'mpp', status: 'payment_required', challenge: expect.stringMatching(/^Payment id="/) },
    listed: [{ isIt: true, amountSat: 21 }],
    error: { status: 404, code: 'node_not_found', message: expect.stringMatching(/./) },
  })
}

generatedBy('openapi-typescript', bin('openapi-typescript'), () => {
  test('D11: a program that uses its types compiles, creates a node and a payment, and reads an error', async () => {
    await run(bin('openapi-typescript'), [join(dist, 'openapi.json'), '--output', join(dist, 'schema.d.ts')])
    await run(bin('tsc'), [])
    expectSale(await run(join(root, 'node_modules/.bin/tsx'), ['client.ts'], env), 'TypeScript')
  })
})

generatedBy('openapi-python-client', python, () => {
  test('D11: a program that uses its package creates a node and a payment, and reads an error', async () => {
    const output = join(dist, 'boltyard_client')
    const args = ['generate', '--path', join(dist, 'openapi.json'), '--meta', 'none', '--output-path', output]
    // The generator formats its output with a program that must be on the PATH. It prints no warning if it understood the whole document.
    const PATH = `${join(here, '.venv/bin')}:${process.env.PATH}`
    expect(await run(python, ['-m', 'openapi_python_client', ...args, '--fail-on-warning'], { PATH })).not.toMatch(
      /warning|error/i,
    )
    expectSale(await run(python, ['client.py'], env), 'Python')
  })
})
