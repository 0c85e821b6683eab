import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server as HttpServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { credentialOf, invoiceIn, newMerchant } from '../../server/test/support/gateway.ts'
import { balanceOf, type Created, fund, type Owner } from '../../server/test/support/nodes.ts'
import { eventually, freePort, type Server, startServer } from '../../server/test/support/server.ts'
import { Customer, inHome, ROOMY, run, start } from './harness.ts'

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
      '1:1 node: is missing. It must be the id of the node that receives the payments: node_…, not its name.',
      '1:9 listen: It must be host:port, such as 0.0.0.0:8080, or a port.',
      expect.stringMatching(/^3:1 protocls: is not a setting\. Allowed: .* Did you mean protocols\?$/),
      '5:5 routes[0]: must have exactly one of amountSat, priceFrom, free, deny.',
      expect.stringMatching(/^5:24 routes\[0\]\.amountSats: is not a setting\. .* Did you mean amountSat\?$/),
      '7:16 routes[1].amountSat: It must be a whole number from 1 to 2100000000000000 (satoshis).',
    ])
  })

  test('C73: the name of a node instead of its id is a mistake', async () => {
    const found = await mistakes(`upstream: http://127.0.0.1:3000\nnode: shop\nroutes: [{ match: /a, free: true }]`)
    expect(found).toEqual(['2:7 node: It must be the id of the node that receives the payments: node_…, not its name.'])
  })

  test('C73: without a terminal, `next` has one mistake per line', async () => {
    write('upstream: nowhere\nnode: shop\nroutes: [{ match: /a, free: true }]')
    const { error } = await proxy('--print-routes')
    const [first, second, ...more] = error().next.split('\n')
    expect([first, second]).toEqual([
      expect.stringContaining(`${FILE}:1:11  upstream:`),
      expect.stringContaining(`${FILE}:2:7  node:`),
    ])
    expect(more).toEqual([])
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

  describe('openapi', () => {
    const PRICED = `${GOOD}discovery: { title: Jokes }\nroutes: [{ match: "GET /a", amountSat: 5 }]\n`
    const document = (name: string, text: string): void => writeFileSync(inHome(name), text)

    test('C78: the document is a YAML or JSON file next to the configuration, and no variable in it is replaced', async () => {
      document(
        'own.yaml',
        `openapi: 3.1.0\ninfo: { title: "\${NOTHING}", version: "1" }\npaths: { /a: { get: { summary: x } } }\n`,
      )
      document('own.json', JSON.stringify({ openapi: '3.0.3', paths: {} }))
      for (const name of ['own.yaml', './own.json', inHome('own.json')]) {
        write(`${PRICED}openapi: ${name}\n`)
        const { code, stderr } = await run(['proxy', '--config', FILE, '--print-routes'], { cwd: '/' })
        expect([code, stderr]).toEqual([0, ''])
      }
    })

    test('C73: a document that is missing or malformed, or contradicts the prices, is a mistake with a place', async () => {
      document('broken.yaml', 'openapi: 3.1.0\npaths: [')
      document('list.json', '[]')
      const offer = '{ offers: [{ intent: charge, method: lightning, amount: "9" }] }'
      document('dear.yaml', `openapi: 3.1.0\npaths: { /a: { get: { x-payment-info: ${offer} } } }\n`)
      const found = async (name: string): Promise<string[]> => mistakes(`${PRICED}openapi: ${name}\n`)
      for (const name of ['nothing.yaml', '.'])
        expect(await found(name)).toEqual([expect.stringMatching(/^5:10 openapi: Cannot read the file: .*\.$/)])
      expect(await found('broken.yaml')).toEqual([
        expect.stringMatching(/^5:10 openapi: The file is neither YAML nor JSON\. Line \d+, column \d+: /),
      ])
      expect(await found('list.json')).toEqual(['5:10 openapi: The file must contain an OpenAPI 3 document.'])
      expect(await found('dear.yaml')).toEqual([
        '5:10 openapi: x-payment-info of GET /a says 9 sat, but the paywall charges 5 sat. Remove it from your document: prices are added.',
      ])
      expect(await found(`\${MISSING}`)).toEqual(['5:10 openapi: The environment variable MISSING is not set, or is empty.'])
    })
  })
})

describe('an upstream with TLS', () => {
  /** A self-signed certificate for one name. */
  function certificateFor(name: string): { key: Buffer; cert: Buffer; file: string } {
    const [key, file] = [inHome(`${name}.key`), inHome(`${name}.pem`)]
    const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', file], { stdio: 'pipe' })
    return { key: readFileSync(key), cert: readFileSync(file), file }
  }

  test.each([
    ['that Node trusts is used', 'localhost', true, 200],
    ['that Node does not trust is 502', 'localhost', false, 502],
    ['for another name is 502', 'elsewhere.example', true, 502],
  ])('C76: a certificate %s, and --check says so', async (_name, certified, isTrusted, status) => {
    const { file, ...certificate } = certificateFor(certified)
    let requests = 0
    const upstream = createSecureServer(certificate, (_request, response) => {
      requests++
      response.end('secure')
    }).listen(0, 'localhost')
    await once(upstream, 'listening')
    const port = await freePort()
    write(`listen: 127.0.0.1:${port}
upstream: https://localhost:${(upstream.address() as AddressInfo).port}
node: node_1
routes: [{ match: /free, free: true }]
`)
    const env = { NODE_EXTRA_CA_CERTS: isTrusted ? file : undefined }
    const { child, ended } = start(['proxy', '--config', FILE], { env, input: null })
    await once(child.stderr as NodeJS.ReadableStream, 'data')
    const answer = await fetch(`http://127.0.0.1:${port}/free`)
    expect([answer.status, requests]).toEqual([status, status === 200 ? 1 : 0])
    expect((await answer.text()) === 'secure').toBe(status === 200)
    const checked = await run(['proxy', '--config', FILE, '--check'], { env })
    expect([checked.code, checked.json().upstream.ok]).toEqual(status === 200 ? [0, true] : [9, false])
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
    upstream.close()
    upstream.closeAllConnections()
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
    expect(bad.error().next.split('\n')).toEqual([
      expect.stringMatching(/yaml:2:7 {2}node: .*no node node_01234567890123456789\. Set `node` to the id /),
      expect.stringContaining('ECONNREFUSED'),
    ])
  })

  test('C73: a free route that takes other spellings of a paid path is one warning, at the start and in --check', async () => {
    const { child, ended, line, url } = await started('  - { match: "/**", free: true }')
    const warning =
      /^boltyard proxy: routes\[2\] \(\/\*\*\) is free, and also matches other spellings of the paid routes\[1\] \(GET \/things\/:id\).* deny .*\n/
    expect(line).toMatch(warning)
    const checked = await command('--check').ended
    expect([checked.code, checked.stderr]).toEqual([0, expect.stringMatching(warning)])
    expect(await (await fetch(url('/Things/1'))).text()).toBe('/Things/1 undefined')
    child.kill('SIGTERM')
    const { stderr } = await ended
    expect(stderr.match(/spellings/g)).toHaveLength(1)
  })

  test('C76: one line at the start, and one if it has to wait at the end; SIGTERM finishes what runs, confirms it, and is exit code 0', async () => {
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
    expect([code, stderr]).toEqual([0, `${line}boltyard proxy: finishing 1 request (at most 10 s).\n`])
    const { payments } = await seller.want<any>(200, 'GET', '/gateway/payments?delivery=held')
    expect(payments).toEqual([])
  })

  test('C76: a paid request that fails at the upstream prints one line, without the query; a free one prints nothing', async () => {
    const { child, ended, line, url } = await started()
    const credential = await bought(url('/things/1'))
    handler = (_request, response) => void response.writeHead(500).end('broken')
    expect((await fetch(url('/free'))).status).toBe(500)
    for (const _ of [1, 2]) expect((await present(url('/things/1?token=secret-value'), credential)).status).toBe(500)
    child.kill('SIGTERM')
    const { stderr } = await ended
    expect(stderr.replace(line, '')).toMatch(
      /^boltyard proxy: The upstream responded with 500 to a paid GET \/things\/1\. pay_\w+ can be used again\.\n$/,
    )
    expect(stderr).not.toContain(credential.split(' ')[1])
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

  test('C76: after kill -9 during a delivery, the customer can use the payment again when its hold has ended, and not before', async () => {
    const routes = '  - { match: "GET /brief/:id", amountSat: 250, holdSeconds: 1 }\nholdSeconds: 600\n'
    const first = await started(routes)
    const [long, brief] = await Promise.all([bought(first.url('/things/1')), bought(first.url('/brief/1'))])
    const arrived = new Set<string | undefined>()
    handler = ({ url }) => void arrived.add(url)
    const lost = [present(first.url('/things/1'), long), present(first.url('/brief/1'), brief)]
    const failed = Promise.allSettled(lost)
    await eventually(async () => arrived.size === 2, 'both requests to arrive')
    first.child.kill('SIGKILL')
    expect((await failed).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    handler = (_request, response) => void response.end('again')
    const second = await started(routes)
    const seen = new Set<string>()
    await eventually(async () => {
      const { status, headers } = await present(second.url('/brief/1'), brief)
      seen.add(`${status} ${headers.get('www-authenticate')}`)
      return status === 200
    }, 'the hold to end')
    // Whether the short hold had ended before the first try depends on the machine. The long one had not.
    expect([...seen].filter((one) => one !== '409 null')).toEqual(['200 null'])
    expect((await present(second.url('/brief/1'), brief)).status).toBe(402)
    const held = await present(second.url('/things/1'), long)
    expect([held.status, held.headers.get('www-authenticate')]).toEqual([409, null])
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
    expect([code, error().code, error().message]).toEqual([
      1,
      'cannot_listen',
      `Cannot listen on 127.0.0.1:${port}: the port is already in use.`,
    ])
    expect(error().next).toBe(`Change \`listen\` in ${FILE}, or stop the program that uses the port.`)
  })
})
