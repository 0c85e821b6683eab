import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { publicOperations } from '../../../contract/src/operations.ts'
import { bound, REPORT } from '../gateway/x402-sales.ts'
import { signUp, type Visitor } from '../support/dashboard.ts'
import {
  attenuate,
  charge,
  credentialOf,
  l402Credential,
  macaroonIn,
  newMerchant,
  type Payment,
  requirementsIn,
  x402Credential,
} from '../support/gateway.ts'
import { basic, type Created, type Owner, runningPidOf, stateOf } from '../support/nodes.ts'
import { PATIENCE_MS, PROCESS, type Server, startServer } from '../support/server.ts'

/**
 * One thread serves everyone, so no request may keep it busy. Every parser of client input gets the longest allowed run of each kind of
 * character, between what the parser expects there and something invalid: that is where a regular expression starts to backtrack. One that
 * takes quadratic time needs 500 ms of CPU for a header of 16 kB.
 */

const DOMAIN = 'nodes.test'
/** All headers together are limited to 16 KiB. A lower limit would be safer, but browsers send the cookies of every port on localhost. */
const HEADER_BYTES = 15_000
const BODY_BYTES = 60_000
/** CPU time above that of a plain request. Ordinary parsing takes up to 7 ms before V8 has compiled it; backtracking takes hundreds. */
const MOST_MS = 25

const UNITS = [
  ' ',
  '\t',
  ',',
  ';',
  ':',
  '"',
  "'",
  '\\',
  '0',
  '1',
  'a',
  'A',
  '=',
  '%',
  '.',
  '/',
  '-',
  '_',
  '+',
  '@',
  '(',
  '[',
  '{',
  '\xe9',
].concat([
  ', ',
  '; ',
  ' ,',
  '="',
  '\\"',
  '%2',
  '%20',
  '%25',
  '../',
  './',
  'a=',
  'a,',
  'a;',
  'a.',
  'a/',
  '1.',
  ' a',
  '\t ',
  '::',
  '+ ',
])

type Probe = { name: string; bytes: (text: string) => Buffer; length: number }

let server: Server
let owner: Owner
let visitor: Visitor
let created: Created
let payments: Payment[]
let daemon: { port: number; pid: number }

beforeAll(async () => {
  server = await startServer({
    command: PROCESS,
    env: {
      NODE_DOMAIN: DOMAIN,
      TRUST_PROXY: '1',
      RATE_LIMIT_MAX: '1000000',
      NODE_PRICE_SAT_PER_DAY: '0',
      LOG_LEVEL: 'silent',
      // With traces, the service reads one more header. Nothing listens at this address.
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_TRACES_SAMPLER_ARG: '0.01',
    },
  })
  visitor = await signUp(server)
  owner = await newMerchant(server, visitor.accountId)
  created = await owner.createReady()
  payments = [
    await charge(owner, created),
    await charge(owner, created, { protocol: 'l402' }),
    await charge(owner, created, { protocol: 'x402', x402: bound() }),
  ]
  const { port } = JSON.parse(readFileSync(join(stateOf(server, created.node), 'run.json'), 'utf8'))
  daemon = { port, pid: runningPidOf(server, created.node) }
})

/** CPU time of the serving thread, as counted by the kernel: other load on this machine does not matter. */
const cpuMs = (pid: number): number => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6

/** Waits until the response begins: by then, the whole request has been parsed. */
function exchange(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.setTimeout(PATIENCE_MS, () => reject(new Error('no answer')))
    socket.on('data', () => socket.destroy())
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => resolve())
    socket.write(bytes)
  })
}

/** Noise only adds, so the smallest of several measurements is the most accurate. */
async function costMs(port: number, pid: number, bytes: Buffer, most: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 20 && least > most; attempt++) {
    const before = cpuMs(pid)
    await exchange(port, bytes)
    least = Math.min(least, cpuMs(pid) - before)
  }
  return least
}

async function expectCheap(port: number, pid: number, probes: Probe[]): Promise<void> {
  const bare = Buffer.from('GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  const most = (await costMs(port, pid, bare, 0)) + MOST_MS
  const slow: string[] = []
  for (const { name, bytes, length } of probes)
    for (const unit of UNITS) {
      const cost = await costMs(port, pid, bytes(unit.repeat(length / unit.length)), most)
      if (cost > most) slow.push(`${name} with ${JSON.stringify(unit)}: ${cost.toFixed(1)} ms`)
    }
  expect(slow).toEqual([])
}

type Parts = { method?: string; path?: string; headers?: Record<string, string>; body?: string }

function message({ method = 'GET', path = '/healthz', headers = {}, body }: Parts): Buffer {
  const all = {
    host: 'localhost',
    connection: 'close',
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  }
  const lines = Object.entries({ ...all, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), Buffer.from(body ?? '')])
}

const inHeader = (name: string, before: string[], parts: Parts = {}): Probe[] =>
  before.map((prefix) => ({
    name: `${name}: ${prefix}… at ${parts.path}`,
    length: HEADER_BYTES - 1_000,
    bytes: (text) => message({ ...parts, headers: { ...parts.headers, [name]: `${prefix}${text}x` } }),
  }))

const inPath = (paths: string[], parts: Parts = {}): Probe[] =>
  paths.map((path) => ({
    name: `the path ${path}`,
    length: HEADER_BYTES - 1_000,
    bytes: (text) => message({ ...parts, path: path.replace('…', `${text}x`) }),
  }))

const inBody = (parts: Parts, body: (text: string) => unknown, name: string): Probe => ({
  name: `${name} to ${parts.path}`,
  length: BODY_BYTES,
  bytes: (text) => {
    // Escapes make some texts longer than a body may be.
    const fitting = JSON.stringify(body(`${text}x`)).length > BODY_BYTES ? text.slice(0, BODY_BYTES / 6) : text
    return message({
      method: 'POST',
      ...parts,
      headers: { 'content-type': 'application/json', ...parts.headers },
      body: JSON.stringify(body(`${fitting}x`)),
    })
  },
})

const asOperator = (): Record<string, string> => ({ authorization: `Bearer ${server.operatorToken}` })
const asOwner = (): Record<string, string> => ({ authorization: `Bearer ${owner.key.key}` })
const asPerson = (): Record<string, string> => ({ cookie: visitor.cookie, origin: server.url })
const onNode = (label: string): Record<string, string> => ({ host: `${label}.${DOMAIN}` })
const unknownNode = '0'.repeat(20)

/** Probes for every header that the service reads. A test below fails if a header is missing here. */
const headerProbes = (): Record<string, Probe[]> => {
  const node = { path: '/getinfo', headers: onNode(unknownNode) }
  const handshake = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  return {
    accept: inHeader('accept', ['', 'text/html', 'text/html,'], { path: '/nowhere' }),
    'accept-encoding': inHeader('accept-encoding', ['', 'gzip', 'gzip;q=', 'gzip;q=0.', 'br,'], { path: '/dashboard/' }),
    authorization: [
      ...inHeader('authorization', ['', 'Bearer', 'Bearer ', 'Bearer byk_', 'Basic '], { path: '/v1/api-key' }),
      ...inHeader('authorization', ['', 'Basic ', 'Basic x,', 'byk_'], node),
    ],
    connection: inHeader('connection', ['', 'close,'], {
      path: '/getinfo',
      headers: onNode(created.node.id.slice('node_'.length)),
    }),
    'content-length': inHeader('content-length', ['', '1'], { method: 'POST', path: '/v1/nodes' }),
    'content-type': [
      ...inHeader('content-type', ['', 'application/json', 'application/json;', 'application/json; charset='], {
        method: 'POST',
        path: '/operator/v1/accounts',
        headers: asOperator(),
        body: '{"name":1}',
      }),
      ...inHeader('content-type', ['', 'application/json', 'application/json;'], {
        method: 'POST',
        path: '/dashboard/api/auth/sign-in/email',
        headers: asPerson(),
        body: '{}',
      }),
    ],
    cookie: inHeader('cookie', ['', 'a=', visitor.cookie, `${visitor.cookie.split('=')[0]}=`], { path: '/dashboard/api/me' }),
    expect: inHeader('expect', ['', '100-continue'], { path: '/healthz' }),
    host: inHeader('host', ['', 'localhost', 'localhost:', '127.0.0.1:', '[::1]', `a.${DOMAIN}`, `a.${DOMAIN}:`], {
      path: '/v1/api-key',
    }),
    'idempotency-key': [
      ...inHeader('idempotency-key', ['', 'a'], {
        method: 'POST',
        path: '/v1/nodes',
        headers: { ...asOwner(), 'content-type': 'application/json' },
        body: '{}',
      }),
      ...inHeader('idempotency-key', ['', 'a'], {
        method: 'POST',
        path: '/dashboard/api/nodes',
        headers: { ...asPerson(), 'content-type': 'application/json' },
        body: '{}',
      }),
    ],
    'last-event-id': inHeader('last-event-id', ['', 'AAAA'], { path: '/v1/events/stream', headers: asOwner() }),
    origin: [
      ...inHeader('origin', ['', 'http://', 'http://localhost', 'http://localhost:'], {
        method: 'POST',
        path: '/dashboard/api/auth/sign-out',
      }),
      ...inHeader('origin', ['', 'http://', `https://a.${DOMAIN}`], node),
    ],
    'sec-fetch-site': inHeader('sec-fetch-site', ['', 'same-origin'], node),
    'sec-websocket-key': inHeader('sec-websocket-key', [''], { ...node, headers: { ...node.headers, ...handshake } }),
    'transfer-encoding': inHeader('transfer-encoding', ['', 'chunked', 'chunked,'], { ...node, method: 'POST' }),
    upgrade: [
      ...inHeader('upgrade', ['', 'websocket'], { ...node, headers: { ...node.headers, ...handshake } }),
      ...inHeader('upgrade', ['h2c,'], { path: '/healthz', headers: { connection: 'upgrade, close' } }),
    ],
    traceparent: inHeader('traceparent', ['', '00-', `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01-`]),
    'user-agent': inHeader('user-agent', ['Mozilla/5.0 ('], { path: '/dashboard/api/me', headers: { cookie: visitor.cookie } }),
    'x-forwarded-for': inHeader('x-forwarded-for', ['', '1.1.1.1', '1.1.1.1,', '::'], { path: '/v1/api-key' }),
    'x-phoenix-signature': inHeader('x-phoenix-signature', [''], {
      method: 'POST',
      path: `/internal/settled/${created.node.id}`,
      body: '{}',
    }),
    'x-request-id': inHeader('x-request-id', [''], { path: '/healthz' }),
    // Parsed by the file server, not by our code.
    'if-none-match': inHeader('if-none-match', ['', 'W/"'], { path: '/docs/quickstart.md' }),
    'if-modified-since': inHeader('if-modified-since', ['', 'Mon, '], { path: '/docs/quickstart.md' }),
    range: inHeader('range', ['', 'bytes=', 'bytes=0-'], { path: '/docs/quickstart.md' }),
  }
}

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url))

describe('security 1: no request keeps the service busy', () => {
  test('security 1: every header that is read has a probe here', () => {
    const probed = Object.keys(headerProbes())
    // The files left out read headers of responses only: those of the Kubernetes API server, and those of webhook receivers.
    const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && !name.startsWith('runtimes/') && name !== 'events/webhooks/sender.ts',
    )
    const read = files.flatMap((name) => {
      const text = readFileSync(join(SOURCE, name), 'utf8')
      const members = [...text.matchAll(/\bheaders(?:\.([a-z]+)\b(?!\()|\['([a-z-]+)'\])/g)].map(
        ([, dotted, quoted]) => dotted ?? quoted ?? '',
      )
      const destructured = [...text.matchAll(/\{([^{}]*)\} = (?:request\.)?headers\b/g)].flatMap(([, names = '']) =>
        names.split(',').map((one) => one.split(':')[0]?.trim().replaceAll("'", '') ?? ''),
      )
      return [...members, ...destructured]
    })
    // Not a header: `headers.ts` is the name of a file.
    expect([...new Set(read)].filter((name) => !probed.includes(name) && name !== 'ts')).toEqual([])
    expect(read).toContain('sec-fetch-site')
  })

  test('security 1: headers of 14 kB', async () => {
    await expectCheap(server.port, server.child.pid ?? 0, Object.values(headerProbes()).flat())
  }, 900_000)

  test('security 1: paths and queries of 14 kB', async () => {
    const open = [
      '/…',
      '/?…',
      '/v1/…',
      '/dashboard/…',
      '/dashboard/a/…',
      '/dashboard/assets/…',
      '/docs/…',
      '/docs/assets/…',
      '/n/…',
      '/n/node_a/…',
      '/internal/settled/…',
    ]
    const described = publicOperations.flatMap(({ method, path, query }) => {
      const filled = path.replace(/\{\w+\}/g, '…')
      const headers = path.startsWith('/operator') ? asOperator() : asOwner()
      const inQuery = Object.keys(query?.properties ?? {}).map((name) => `${filled.replaceAll('…', 'x')}?${name}=…`)
      return inPath(filled.includes('…') ? [filled, ...inQuery] : inQuery, { method, headers })
    })
    await expectCheap(server.port, server.child.pid ?? 0, [
      ...inPath(open),
      ...inPath(['/…', '/getinfo?…'], { headers: onNode(unknownNode) }),
      ...inPath(['/dashboard/api/activity?cursor=…', '/dashboard/api/payments?cursor=…', '/dashboard/api/nodes/…'], {
        headers: asPerson(),
      }),
      ...described,
    ])
  }, 900_000)

  test('security 1: bodies of 60 kB: every text field, and credentials of all protocols', async () => {
    const fields = publicOperations.flatMap(({ method, path, body }) => {
      const properties: Record<string, any> = body?.properties ?? {}
      const examples = Object.fromEntries(
        Object.entries(properties).map(([name, { type }]) => [name, type === 'integer' ? 1 : type === 'array' ? [] : 'a']),
      )
      const parts = {
        method,
        path: path.replace(/\{\w+\}/g, 'x'),
        headers: path.startsWith('/operator') ? asOperator() : asOwner(),
      }
      return Object.entries(properties)
        .filter(([, { type, enum: values }]) => type === 'string' || values)
        .map(([name]) => inBody(parts, (text) => ({ ...examples, [name]: text }), name))
    })
    expect(fields.length).toBeGreaterThan(10)
    const person = (path: string, body: (text: string) => unknown): Probe =>
      inBody({ path: `/dashboard/api${path}`, headers: asPerson() }, body, 'a field')
    const [mpp, l402, x402] = payments as [Payment, Payment, Payment]
    const proof = '0'.repeat(64)
    const macaroon = macaroonIn(l402.challenge)
    const credential = ({ id }: Payment, of: (text: string) => string): Probe =>
      inBody(
        { path: `/v1/gateway/payments/${id}/validate`, headers: asOwner() },
        (text) => ({ credential: of(text) }),
        'a credential',
      )
    const { extra, ...required } = requirementsIn(x402.challenge)
    const accepted = (more: object): object => ({ ...required, extra: { ...extra, ...more } })
    const x402Payment = (of: (text: string) => string): Probe =>
      inBody(
        { path: '/v1/gateway/payments/redeem', headers: asOwner() },
        (text) => ({ credential: of(text), requestHash: REPORT }),
        'an x402 credential',
      )
    /** Short enough for the credential to be decoded: above 16 KiB, it is refused without decoding. */
    const short = (text: string): string => text.slice(0, 10_000)
    const settlement = (requirements: (text: string) => object): Probe =>
      inBody(
        { path: '/v1/gateway/x402/settle', headers: asOwner() },
        (text) => {
          const some = requirements(text.slice(0, 25_000))
          const paymentPayload = { x402Version: 2, accepted: some, payload: { preimage: proof } }
          return { x402Version: 2, paymentPayload, paymentRequirements: some }
        },
        'x402 requirements',
      )
    const offer = (more: (text: string) => object): Probe =>
      inBody(
        { path: '/v1/gateway/payments', headers: asOwner() },
        // The node does not exist, so no invoice is made.
        (text) => ({ nodeId: 'x', amountSat: 1, description: 'x', protocol: 'x402', x402: { ...bound(), ...more(text) } }),
        'x402',
      )
    await expectCheap(server.port, server.child.pid ?? 0, [
      ...fields,
      x402Payment((text) => text),
      x402Payment(short),
      x402Payment((text) => x402Credential(short(text), proof)),
      x402Payment((text) => x402Credential({ ...required, amount: short(text) }, proof)),
      x402Payment((text) => x402Credential(accepted({ invoice: short(text) }), proof)),
      x402Payment((text) => x402Credential(accepted({ invoice: `lnbcrt10n1${short(text)}` }), proof)),
      x402Payment((text) => x402Credential(accepted({ requestHash: short(text) }), proof)),
      x402Payment((text) => x402Credential(accepted({ requestBindingParams: { headers: [short(text)] } }), proof)),
      x402Payment((text) => x402Credential(accepted({}), short(text))),
      settlement((text) => ({ ...required, amount: text })),
      settlement((text) => accepted({ requestBindingParams: { headers: [text] } })),
      settlement((text) => accepted({ requestBindingProfile: 'mcp:1', requestBindingParams: { server: text, metadata: [] } })),
      settlement((text) =>
        accepted({ requestBindingProfile: 'mcp:1', requestBindingParams: { server: `a:${text}`, metadata: [] } }),
      ),
      settlement((text) => accepted({ other: text })),
      offer((text) => ({ resource: { url: text } })),
      offer((text) => ({ resource: { url: `https://x/${text.slice(0, 900)}` } })),
      offer((text) => ({ requestBindingParams: { headers: [text.slice(0, 60)] } })),
      credential(mpp, (text) => text),
      credential(mpp, (text) => `Payment ${text}`),
      credential(mpp, (text) => `${credentialOf(mpp, proof)}${text}`),
      credential(
        mpp,
        (text) =>
          `Payment ${Buffer.from(`{"challenge":{"id":${JSON.stringify(text)}}`)
            .toString('base64url')
            .slice(0, BODY_BYTES - 200)}`,
      ),
      credential(l402, (text) => `L402 ${text}`),
      credential(l402, (text) => `L402 ${macaroon.toString('base64')}${text}`),
      credential(l402, (text) => `L402 ${macaroon.toString('base64')}:${text}`),
      credential(l402, (text) => l402Credential(attenuate(macaroon, `services=${text.slice(0, 50)}`), proof)),
      person('/link/inspect', (token) => ({ token })),
      person('/auth/sign-up/email', (email) => ({ email, password: 'p' })),
      person('/auth/sign-up/email', (email) => ({ email: `a@${email.slice(0, 990)}`, password: 'p' })),
      person('/auth/update-user', (name) => ({ name })),
      person('/keys', (name) => ({ name, scopes: [] })),
      person('/nodes', (name) => ({ name })),
      inBody({ path: '/operator/v1/accounts', headers: asOperator() }, (text) => ({ [text]: 1 }), 'a name of a field'),
      {
        name: 'no JSON',
        length: BODY_BYTES,
        bytes: (text) =>
          message({
            method: 'POST',
            path: '/v1/nodes',
            headers: { ...asOwner(), 'content-type': 'application/json' },
            body: text,
          }),
      },
    ])
  }, 900_000)

  test('security 1: the sandbox’s own API, behind the proxy', async () => {
    const headers = { ...basic(created.credentials.password), 'content-type': 'application/x-www-form-urlencoded' }
    const form = (path: string, field: string, before = ''): Probe => ({
      name: `${field} to ${path}`,
      length: BODY_BYTES / 3,
      bytes: (text) => message({ method: 'POST', path, headers, body: `${field}=${before}${encodeURIComponent(text)}x` }),
    })
    await expectCheap(daemon.port, daemon.pid, [
      ...inHeader('authorization', ['', 'Basic ', 'Bearer '], { path: '/getinfo' }),
      ...inPath(['/…', '/payments/incoming?externalId=…', '/payments/incoming/…'], { headers }),
      form('/createinvoice', 'description'),
      form('/createinvoice', 'amountSat'),
      form('/createinvoice', 'externalId'),
      form('/payinvoice', 'invoice'),
      form('/payinvoice', 'invoice', 'lnbcrt1'),
      form('/decodeinvoice', 'invoice', 'lnbcrt'),
      form('/decodeoffer', 'offer', 'lno1'),
      form('/paylnaddress', 'address', 'a@'),
      form('/lnurlpay', 'lnurl', 'lnurl1'),
      form('/sendtoaddress', 'address', 'bcrt1'),
    ])
  }, 900_000)
})
