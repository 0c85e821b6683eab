import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { eventually, freePort, type Server, temporaryDirectory } from '../../server/test/support/server.ts'
import { inBrowser, newPerson, startDashboard } from './harness.ts'
import { payChallenge } from './pages.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const whichOf = (name: string): string => execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
const CURL = whichOf('curl')
/** The Python program itself: `python3` may be a script that needs programs which `machine` does not have. */
const PYTHON = pythonOf()
function pythonOf(): string | undefined {
  try {
    return execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim()
  } catch {
    process.stderr.write('The Python snippets are not tested: there is no python3.\n')
    return undefined
  }
}

/** Stands in for a machine with bash, curl, Node, Python and the command line client, and nothing else, such as uuidgen. */
function machine(): { directory: string; PATH: string } {
  const directory = temporaryDirectory()
  const bin = join(directory, 'bin')
  mkdirSync(bin)
  symlinkSync(CURL, join(bin, 'curl'))
  if (PYTHON) symlinkSync(realpathSync(PYTHON), join(bin, 'python3'))
  symlinkSync(realpathSync(process.execPath), join(bin, 'node'))
  writeFileSync(join(bin, 'boltyard'), `#!/bin/bash\nexec node ${join(ROOT, 'cli/dist/boltyard.js')} "$@"\n`)
  chmodSync(join(bin, 'boltyard'), 0o755)
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  return { directory, PATH: bin }
}

type Ended = { stdout: string; stderr: string; code: number | null }

/** Feeds the code to the standard input of a shell, as if it was pasted. */
async function paste(code: string, env: Record<string, string>): Promise<Ended> {
  const { PATH, directory } = machine()
  const shell = spawn('/bin/bash', [], { cwd: directory, env: { PATH, HOME: directory, ...env } })
  const ended: Ended = { stdout: '', stderr: '', code: null }
  shell.stdout.on('data', (chunk) => {
    ended.stdout += chunk
  })
  shell.stderr.on('data', (chunk) => {
    ended.stderr += chunk
  })
  shell.stdin.end(`${code}\n`)
  ;[ended.code] = await once(shell, 'close')
  return ended
}

async function pasteCurl<T = any>(code: string, env: Record<string, string>): Promise<T> {
  const { stdout, stderr, code: exit } = await paste(code, env)
  expect([exit, stderr.split('\n').filter((line) => /not found|error|bash:/i.test(line))]).toEqual([0, []])
  return JSON.parse(stdout)
}

inBrowser('the snippets of the dashboard, pasted as they are', () => {
  let server: Server
  beforeAll(async () => {
    server = await startDashboard()
  })

  const snippet = async (page: Page, label: string): Promise<string> => {
    const code = page.getByRole('region', { name: label, exact: true }).locator('code')
    return (await code.textContent()) ?? ''
  }

  test('dashboard: D2: the bash snippets work with and without a node, from the key to a redeemed payment', async () => {
    const person = await newPerson(server)
    const { page } = person
    const SERVICE_API_KEY = await server.newKey(['nodes:write', 'gateway:write'], person.accountId).then(({ key }) => key)
    await person.open('developers')
    const key = await pasteCurl(await snippet(page, 'Check your key'), { SERVICE_API_KEY })
    expect(key.scopes).toContain('gateway:write')

    const read = async () => ({ charge: await snippet(page, 'Ask for a payment'), redeem: await snippet(page, 'Redeem') })
    const withoutNode = await read()

    // Twice, as after a lost response.
    const create = await snippet(page, 'Create a node')
    const [first, second] = [await pasteCurl(create, { SERVICE_API_KEY }), await pasteCurl(create, { SERVICE_API_KEY })]
    expect(second).toEqual(first)
    const NODE_ID: string = first.node.id
    await person.until(NODE_ID, 'ready')
    await expect.poll(() => snippet(page, 'Ask for a payment')).toContain(NODE_ID)
    const withNode = await read()

    const ways: [typeof withNode, Record<string, string>][] = [
      [withoutNode, { SERVICE_API_KEY, NODE_ID }],
      [withNode, { SERVICE_API_KEY }],
    ]
    for (const [{ charge, redeem }, env] of ways) {
      const { id, challenge } = await pasteCurl(charge, env)
      const CREDENTIAL = await payChallenge(person, challenge)
      const redeemed = await pasteCurl(redeem, { ...env, PAYMENT_ID: id, CREDENTIAL })
      expect(redeemed).toMatchObject({ id, status: 'paid', nodeId: NODE_ID, resource: 'GET /report', amountSat: 100 })

      // A payment for something cheaper is refused.
      const json = { nodeId: NODE_ID, amountSat: 1, description: 'One report', resource: 'GET /report', protocol: 'l402' }
      const cheap = await person.want(201, 'POST', '/payments', { json })
      const stolen = { PAYMENT_ID: cheap.id, CREDENTIAL: await payChallenge(person, cheap.challenge) }
      const refusal = await pasteCurl(redeem, { ...env, ...stolen })
      expect(refusal.error).toMatchObject({ code: 'terms_mismatch', mismatch: ['minAmountSat'] })
    }
  })

  test('dashboard: D2: the TypeScript and Python snippets do the same, and the language is remembered', async () => {
    const person = await newPerson(server)
    const { page } = person
    const SERVICE_API_KEY = await server.newKey(['nodes:write', 'gateway:write'], person.accountId).then(({ key }) => key)
    const { node } = await person.createReady()
    const programs: Record<string, (code: string) => string> = {
      TypeScript: (code) => `node --input-type=module - <<'SCRIPT'\n${code}\nSCRIPT`,
      ...(PYTHON ? { Python: (code: string) => `python3 - <<'SCRIPT'\n${code}\nSCRIPT` } : {}),
    }
    for (const [language, program] of Object.entries(programs)) {
      await person.open('developers')
      await page.getByRole('tab', { name: language }).click()
      await page.reload()
      await page.getByRole('tab', { name: language, selected: true }).waitFor()
      await expect.poll(() => snippet(page, 'Ask for a payment')).toContain(node.id)
      const run = async (label: string, env: Record<string, string> = {}): Promise<[status: string, body: any]> => {
        const { stdout, stderr, code } = await paste(program(await snippet(page, label)), { SERVICE_API_KEY, ...env })
        expect([code, stderr]).toEqual([0, ''])
        return [stdout.slice(0, 3), JSON.parse(stdout.slice(4))]
      }
      expect(await run('Check your key')).toMatchObject(['200', { accountId: person.accountId }])
      const [status, first] = await run('Create a node')
      expect([status, await run('Create a node')]).toEqual(['202', ['202', first]])
      const [, { id, challenge }] = await run('Ask for a payment')
      const CREDENTIAL = await payChallenge(person, challenge)
      expect(await run('Redeem', { PAYMENT_ID: id, CREDENTIAL })).toMatchObject(['200', { id, status: 'paid', amountSat: 100 }])
      // An error is shown with its body, not as a stack trace.
      expect(await run('Redeem', { PAYMENT_ID: 'pay_x', CREDENTIAL })).toMatchObject([
        '404',
        { error: { code: 'gateway_payment_not_found' } },
      ])
    }
  })

  test('dashboard: D2: the SDK snippet is a shop that charges and delivers', async () => {
    const person = await newPerson(server)
    const { page } = person
    const SERVICE_API_KEY = await server.newKey(['nodes:read', 'gateway:write'], person.accountId).then(({ key }) => key)
    const { node } = await person.createReady()
    await person.open('developers')
    await page.getByRole('tab', { name: 'TypeScript' }).click()
    // The page and the README must both say so until the packages are published.
    expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toContain('The packages are not published yet.')
    await page.getByText('The SDK is not published yet').waitFor()
    await expect.poll(() => snippet(page, 'A server that charges')).toContain(node.id)
    const { PATH, directory } = machine()
    writeFileSync(join(directory, 'shop.mjs'), await snippet(page, 'A server that charges'))
    const PORT = String(await freePort())
    const shop = spawn(process.execPath, ['shop.mjs'], { cwd: directory, env: { PATH, SERVICE_API_KEY, PORT } })
    let said = ''
    shop.stderr.on('data', (chunk) => {
      said += chunk
    })
    try {
      const visit = (headers: Record<string, string> = {}) => fetch(`http://127.0.0.1:${PORT}/report`, { headers })
      const asked = await eventually(
        () => visit().catch((error: unknown) => Promise.reject(new Error(`${error} ${said}`))),
        'the shop to open',
      )
      expect(asked.status).toBe(402)
      const [, invoice = ''] = /"invoice":"(\w+)"/.exec(decoded(asked.headers.get('www-authenticate') ?? '')) ?? []
      const { preimage } = await person.want(200, 'POST', '/sandbox/pay', { json: { invoice } })
      const paid = await visit({ authorization: answerTo(asked.headers.get('www-authenticate') ?? '', preimage) })
      expect([paid.status, await paid.text()]).toEqual([200, 'Here is what you paid for.'])
    } finally {
      shop.kill()
      await once(shop, 'close')
    }
  })

  test('dashboard: the snippets of a node work: curl, TypeScript, Python and the command line', async () => {
    const person = await newPerson(server)
    const { page } = person
    const SERVICE_API_KEY = await server.newKey(['nodes:read', 'gateway:write'], person.accountId).then(({ key }) => key)
    const { node, credentials } = await person.createReady()
    const NODE_RESTRICTED_PASSWORD = credentials.restrictedPassword
    await person.open(`nodes/${node.id}?tab=connect`)
    const invoice = await pasteCurl(await snippet(page, 'curl example'), { NODE_RESTRICTED_PASSWORD })
    expect(invoice.serialized).toMatch(/^ln/)
    // At Python's prompt, where a block ends differently than in a file.
    const programs = { TypeScript: 'node --input-type=module', ...(PYTHON ? { Python: 'python3 -i -q' } : {}) }
    for (const [language, program] of Object.entries(programs)) {
      await page.getByRole('tab', { name: language }).click()
      const script = await snippet(page, `${language} example`)
      const ran = await paste(`${program} <<'SCRIPT'\n${script}\nSCRIPT`, { NODE_RESTRICTED_PASSWORD })
      expect([ran.code, ran.stdout]).toEqual([0, expect.stringMatching(/^ln\w+ [0-9a-f]{64}\n$/)])
      expect(ran.stderr).not.toContain('Error')
    }
    await page.getByRole('tab', { name: 'Command line' }).click()
    const client = await paste(await snippet(page, 'Command line example'), { SERVICE_API_KEY })
    expect([client.code, client.stderr]).toEqual([0, ''])
    expect(client.stdout).toContain(node.id)
    expect(client.stdout).toMatch(/pay_[0-9a-z]{20}/)
  })
})

const parametersOf = (challenge: string): Record<string, string> =>
  Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))

const decoded = (challenge: string): string => Buffer.from(parametersOf(challenge).request ?? '', 'base64url').toString()

/** The credential that an MPP client would send. */
function answerTo(challenge: string, preimage: string): string {
  const { id, realm, method, intent, request, expires } = parametersOf(challenge)
  const token = { challenge: { expires, id, intent, method, realm, request }, payload: { preimage } }
  return `Payment ${Buffer.from(JSON.stringify(token)).toString('base64url')}`
}
