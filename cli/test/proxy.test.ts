import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Server as HttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { credentialOf, invoiceIn, newMerchant } from '../../server/test/support/gateway.ts'
import { balanceOf, type Created, fund, type Owner } from '../../server/test/support/nodes.ts'
import { eventually, freePort, type Server, startServer } from '../../server/test/support/server.ts'
import { Customer, inHome, ROOMY, run } from './harness.ts'

/** `boltyard proxy` as its users run it: the built command, a file, a program behind it. */

const FILE = inHome('boltyard.proxy.yaml')
const write = (text: string): void => writeFileSync(FILE, text)

describe('the file', () => {
  const proxy = (...args: string[]) => run(['proxy', '--config', FILE, ...args], { env: { SET: 'secret-value', EMPTY: '' } })
  const mistakes = async (text: string): Promise<string[]> => {
    write(text)
    const { code, error, stderr } = await proxy('--print-routes')
    expect([code, error().code]).toEqual([2, 'invalid_config'])
    expect(stderr).not.toContain('secret-value')
    return error().mistakes.map(({ line, column, path, message }: any) => `${line}:${column} ${path}: ${message}`)
  }
  const GOOD = 'upstream: http://127.0.0.1:3000\nnode: node_1\n'

  test('C73: every mistake has its line and column, what is allowed, and the name that was probably meant', async () => {
    const found = await mistakes(`listen: nowhere
upstream: http://127.0.0.1:3000
protocls: [mpp]
routes:
  - { match: "GET /a", amountSats: 25 }
  - match: /b
    amountSat: "secret-value"
`)
    expect(found).toEqual([
      '1:1 node: is missing. It must be the id of the node that receives the payments: node_….',
      '1:9 listen: It must be host:port, such as 0.0.0.0:8080, or a port.',
      expect.stringMatching(/^3:1 protocls: is not a setting\. Allowed: .* Did you mean protocols\?$/),
      '5:5 routes[0]: must have exactly one of amountSat, priceFrom, free, deny.',
      expect.stringMatching(/^5:24 routes\[0\]\.amountSats: is not a setting\. .* Did you mean amountSat\?$/),
      '7:16 routes[1].amountSat: It must be a whole number from 1 to 2100000000000000 (satoshis).',
    ])
  })

  test('C73: a variable that is not set or empty is a mistake that names it', async () => {
    const found = await mistakes(`${GOOD}routes: [{ match: /a, free: true }]
headers: { set: { a: "\${SET}", b: "\${MISSING}", c: "\${EMPTY} \${NO-NAME}" } }
publicUrl: \${MISSING_URL}
`)
    expect(found.map((text) => text.replace(/^\d+:\d+ /, ''))).toEqual([
      'headers.set.b: The environment variable MISSING is not set, or is empty.',
      'headers.set.c: The environment variable EMPTY is not set, or is empty.',
      expect.stringMatching(/^headers\.set\.c: must have the name of an environment variable/),
      'publicUrl: The environment variable MISSING_URL is not set, or is empty.',
    ])
  })

  test.each([
    ['no YAML', `${GOOD}routes: [`],
    ['a name twice', `${GOOD}node: node_2\nroutes: [{ match: /a, free: true }]`],
    ['an unknown alias', `${GOOD}routes: *nothing`],
    ['an unknown tag', `${GOOD}routes: !!js/function "x"`],
  ])('C73: %s is a mistake with a place', async (_name, text) => {
    const [first] = await mistakes(text)
    expect(first).toMatch(/^\d+:\d+ /)
  })

  test('C73: an empty file, a missing file and no file', async () => {
    expect(await mistakes('')).toEqual([expect.stringMatching(/^1:1 the configuration: /)])
    const missing = await run(['proxy', '--config', inHome('nothing.yaml')])
    expect([missing.code, missing.error().message]).toEqual([2, expect.stringMatching(/nothing\.yaml/)])
    expect((await run(['proxy'])).code).toBe(2)
  })

  test('C73: --print-routes needs no key, and shows the routes in order, without secrets', async () => {
    write(`${GOOD}protocols: [x402, mpp]
routes:
  - { match: "GET /health", free: true }
  - { match: "GET /a/:id", amountSat: 25, description: "$\${literal}" }
  - { match: "/b", priceFrom: "http://127.0.0.1/price?key=secret-value" }
  - { match: "/**", deny: 410 }
headers: { set: { authorization: "Bearer \${SET}" } }
`)
    const { code, json, stdout } = await proxy('--print-routes')
    expect(code).toBe(0)
    expect(json().routes).toMatchObject([
      { match: 'GET /health', access: 'free' },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what $${ stands for
      { match: 'GET /a/:id', amountSat: 25, description: '${literal}', protocols: ['mpp', 'x402'], bind: 'path' },
      { match: '/b', amountSat: null, priceFrom: 'http://127.0.0.1/price', bind: 'url' },
      { match: '/**', access: 'denied', status: 410 },
    ])
    expect(stdout).not.toContain('secret-value')
  })
})

describe('running', () => {
  let server: Server
  let seller: Owner
  let shop: Created
  let customer: Customer
  let program: HttpServer
  let handler: RequestListener
  beforeAll(async () => {
    server = await startServer({ env: { ...ROOMY, TRUST_PROXY: '1' } })
    seller = await newMerchant(server)
    shop = await seller.createReady()
    customer = new Customer(`${server.url}/v1`, seller.key.key)
    program = createServer((request, response) => handler(request, response)).listen(0, '127.0.0.1')
    await once(program, 'listening')
  })
  afterAll(() => {
    program.close()
    program.closeAllConnections()
  })
  beforeEach(() => {
    handler = (request, response) => void response.end(`${request.url} ${request.headers['x-payment-protocol']}`)
  })

  const upstream = (): string => `http://127.0.0.1:${(program.address() as AddressInfo).port}`
  const configured = (port: number, more = ''): void =>
    write(`listen: 127.0.0.1:${port}
upstream: ${upstream()}
node: \${NODE_ID}
protocols: [mpp, l402, x402]
limits: { openChallengesPerAddress: 0 }
routes:
  - { match: "GET /free", free: true }
  - { match: "GET /things/:id", amountSat: 250 }
${more}`)
  const command = (...args: string[]) =>
    customer.start(['proxy', '--config', FILE, ...args], { env: { NODE_ID: shop.node.id }, input: null })

  async function started(more = '') {
    const port = await freePort()
    configured(port, more)
    const { child, ended } = command()
    const [line] = await once(child.stderr as NodeJS.ReadableStream, 'data')
    return { child, ended, line: String(line), url: (path: string) => `http://127.0.0.1:${port}${path}`, port }
  }

  /** The credential of a customer who has paid by MPP. */
  async function bought(url: string): Promise<string> {
    const answer = await fetch(url, { headers: { 'accept-payment': 'lightning/charge' } })
    const challenge = answer.headers.get('www-authenticate') ?? ''
    const paid = await server.operator('POST', '/sandbox/pay', { json: { invoice: invoiceIn(challenge) } })
    return credentialOf({ protocol: 'mpp', challenge }, paid.json().preimage)
  }
  const present = (url: string, authorization: string): Promise<Response> => fetch(url, { headers: { authorization } })

  test('C73: --check asks the gateway and the upstream', async () => {
    configured(await freePort())
    const good = await command('--check').ended
    expect([good.code, good.json()]).toEqual([0, { routes: 2, gateway: { ok: true }, upstream: { ok: true } }])
    const away = await freePort()
    write(`upstream: http://127.0.0.1:${away}\nnode: node_01234567890123456789\nroutes: [{ match: /a, amountSat: 1 }]`)
    const bad = await command('--check').ended
    expect([bad.code, bad.error().code]).toEqual([9, 'not_ready'])
    expect(bad.json()).toMatchObject({ gateway: { ok: false }, upstream: { ok: false } })
    expect(bad.error().next).toMatch(/no node node_01234567890123456789.*ECONNREFUSED/)
  })

  test('C76: one line at the start; SIGTERM finishes what runs, confirms it, and is exit code 0', async () => {
    const { child, ended, line, url } = await started()
    expect(line).toBe(`boltyard proxy: ${url('')} → ${upstream()}. 2 routes: 1 paid, 1 free, 0 denied.\n`)
    const credential = await bought(url('/things/1'))
    let finish = (): void => undefined
    const arrived = new Promise<void>((resolve) => {
      handler = (_request, response) => {
        response.write('half ')
        finish = () => void response.end('and half')
        resolve()
      }
    })
    const answering = present(url('/things/1'), credential)
    await arrived
    const answer = await answering
    child.kill('SIGTERM')
    await eventually(() => refuses(url('/free')), 'the proxy to stop listening')
    finish()
    expect(await answer.text()).toBe('half and half')
    const { code, stderr } = await ended
    expect([code, stderr]).toEqual([0, line])
    const { payments } = await seller.want<any>(200, 'GET', '/gateway/payments?delivery=held')
    expect(payments).toEqual([])
  })

  async function refuses(url: string): Promise<boolean> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    return new Promise((resolve) => {
      socket.once('connect', () => {
        socket.destroy()
        resolve(false)
      })
      socket.once('error', () => resolve(true))
    })
  }

  test('C76: after kill -9 during a delivery, the customer can use the payment again when its hold has ended', async () => {
    const first = await started('holdSeconds: 3')
    const credential = await bought(first.url('/things/1'))
    const arrived = new Promise<void>((resolve) => {
      handler = () => resolve()
    })
    const lost = present(first.url('/things/1'), credential).catch((error) => error)
    await arrived
    first.child.kill('SIGKILL')
    expect(await lost).toBeInstanceOf(Error)
    handler = (_request, response) => void response.end('again')
    const second = await started('holdSeconds: 3')
    const early = await present(second.url('/things/1'), credential)
    // Unless this machine was slower than the hold, the claim of the killed process still counts. Either way there is no challenge.
    expect([[409, 200].includes(early.status), early.headers.get('www-authenticate')]).toEqual([true, null])
    if (early.status === 409)
      await eventually(async () => (await present(second.url('/things/1'), credential)).status === 200, 'the hold to end')
    expect((await present(second.url('/things/1'), credential)).status).toBe(402)
    second.child.kill('SIGTERM')
    expect((await second.ended).code).toBe(0)
  })

  test('C75: boltyard pay buys from it once', async () => {
    const { child, ended, url } = await started()
    const purse = await (await newMerchant(server)).createReady()
    await fund(server, purse, 100_000)
    const file = inHome('purse.json')
    writeFileSync(file, JSON.stringify({ nodeId: purse.node.id, endpointUrl: purse.node.endpointUrl, ...purse.credentials }))
    const [before, earnedBefore] = await Promise.all([balanceOf(purse), balanceOf(shop)])
    const paid = await run(['pay', url('/things/7'), '--password-file', file])
    expect([paid.code, paid.stdout]).toEqual([0, expect.stringMatching(/^\/things\/7 (mpp|l402|x402)$/)])
    // phoenixd's fee is 4 sat + 0.4 %.
    expect([before - (await balanceOf(purse)), (await balanceOf(shop)) - earnedBefore]).toEqual([255, 250])
    child.kill('SIGINT')
    expect((await ended).code).toBe(0)
  })

  test('C73: a port that is taken is an error that says so', async () => {
    const { port } = program.address() as AddressInfo
    configured(port)
    const { code, error } = await command().ended
    expect([code, error().code]).toEqual([1, 'cannot_listen'])
  })
})
