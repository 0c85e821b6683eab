import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server as HttpServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { encode, sign } from 'bolt11'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeKeysOf } from '../../../sandboxd/src/seed.ts'
import { removeUnpaidPayments } from '../../src/store/payments/payments.ts'
import {
  charge,
  credentialOf,
  decoded,
  invoiceIn,
  newMerchant,
  type Protocol,
  parametersOf,
  pay,
  preimageFrom,
  rowOf,
  sha256,
  storeOf,
  validate,
} from '../support/gateway.ts'
import { type Created, fault, type Owner, redirectNode, withhold } from '../support/nodes.ts'
import { report } from '../support/payments.ts'
import { eventually, type Server, startServer } from '../support/server.ts'
import { bound, REPORT } from './x402-sales.ts'

/** A node that answers as no honest node would. The service is real, but is redirected to an impostor instead of its node. */

const PROTOCOLS: Protocol[] = ['mpp', 'l402']
const AMOUNT = 1000
const DESCRIPTION = 'Weather report'
const NETWORKS = { lnbcrt: 'bcrt', lnbc: 'bc', lntb: 'tb', lntbs: 'tbs', lnsb: 'sb' } as const

type Reply = { status?: number; body: unknown } | ((response: ServerResponse) => void)

let server: Server
let merchant: Owner
let shop: Created
let impostor: HttpServer
let realPort: number
/** The impostor's own replies, by the first part of the path. The real node answers everything else. */
const says = new Map<string, (form: URLSearchParams) => Reply>()
let forms: URLSearchParams[] = []

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
  merchant = await newMerchant(server)
  shop = await merchant.createReady()
  impostor = createServer((incoming, response) => {
    // A mistake in the test must not look like a hung node.
    answer(incoming, response).catch((error: Error) => response.writeHead(599, { mistake: error.message }).end())
  }).listen(0, '127.0.0.1')
  await once(impostor, 'listening')
  realPort = redirectNode(server, shop.node, (impostor.address() as AddressInfo).port)
})

afterAll(() => {
  impostor.closeAllConnections()
  impostor.close()
})

async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const path = incoming.url ?? ''
  const reply = says.get(path.split('/')[1] ?? '')
  if (!reply) {
    const { method, headers } = incoming
    const onward = request({ host: '127.0.0.1', port: realPort, method, path, headers, agent: false }, (real) => {
      response.writeHead(real.statusCode ?? 0, real.headers)
      real.pipe(response)
    })
    onward.on('error', () => response.destroy())
    return void onward.end(body)
  }
  const form = new URLSearchParams(body.toString('utf8'))
  forms.push(form)
  const said = reply(form)
  if (typeof said === 'function') return said(response)
  const text = typeof said.body === 'string' ? said.body : JSON.stringify(said.body)
  response.writeHead(said.status ?? 200, { 'content-type': 'application/json' }).end(text)
}

async function while_<T>(
  path: 'createinvoice' | 'payments',
  reply: (form: URLSearchParams) => Reply,
  act: () => Promise<T>,
): Promise<T> {
  forms = []
  says.set(path, reply)
  try {
    return await act()
  } finally {
    says.delete(path)
  }
}

type Terms = {
  prefix: keyof typeof NETWORKS
  millisatoshis: string | null
  description: string | undefined
  descriptionHash: string | undefined
  paymentHash: string
  timestamp: number
  expiry: number | undefined
}

/** Encoded by an independent library, and correct except for the given changes. */
function invoice(changes: Partial<Terms> = {}, privateKey = '1'.repeat(64)): { serialized: string; paymentHash: string } {
  const right: Terms = {
    prefix: 'lnbcrt',
    millisatoshis: `${AMOUNT}000`,
    description: DESCRIPTION,
    descriptionHash: undefined,
    paymentHash: randomBytes(32).toString('hex'),
    timestamp: Math.floor(Date.now() / 1000),
    expiry: 300,
  }
  const { prefix, millisatoshis, description, descriptionHash, paymentHash, timestamp, expiry } = { ...right, ...changes }
  const network = { bech32: NETWORKS[prefix], pubKeyHash: 0x6f, scriptHash: 0xc4, validWitnessVersions: [0] }
  const tag = (tagName: string, data: string | number | undefined) => (data === undefined ? [] : [{ tagName, data }])
  const tags = [
    ...tag('payment_hash', paymentHash),
    ...tag('description', description),
    ...tag('purpose_commit_hash', descriptionHash),
    ...tag('expire_time', expiry),
  ]
  const amount = millisatoshis === null ? {} : { millisatoshis }
  const serialized = sign(encode({ network, ...amount, timestamp, tags }, false), privateKey).paymentRequest ?? ''
  return { serialized, paymentHash }
}

const made = (changes: Partial<Terms> = {}, more: object = {}): Reply => ({
  body: { amountSat: AMOUNT, ...invoice(changes), ...more },
})
const ask = async (protocol: Protocol, description = DESCRIPTION): Promise<[status: number, code: string]> => {
  const json = { nodeId: shop.node.id, amountSat: AMOUNT, description, protocol }
  const { status, json: body, text } = await merchant.send('POST', '/gateway/payments', { json })
  return [status, body().error?.code ?? text]
}
const count = async (): Promise<number> => (await storeOf(server)`SELECT count(*)::int AS n FROM gateway_payments`)[0]?.n

describe('an invoice from an untrusted node', () => {
  test('the impostor’s unchanged invoice is accepted: otherwise the rest would prove nothing', async () => {
    for (const protocol of PROTOCOLS) {
      const payment = await while_(
        'createinvoice',
        () => made(),
        () => charge(merchant, shop, { protocol, amountSat: AMOUNT }),
      )
      expect(decoded(invoiceIn(payment.challenge))).toMatchObject({ amountMsat: `${AMOUNT}000`, description: DESCRIPTION })
      const [form] = forms
      // MPP 15, L402 13: this is what the node was asked for.
      expect(Object.fromEntries(form ?? [])).toEqual({
        amountSat: String(AMOUNT),
        description: DESCRIPTION,
        expirySeconds: '300',
        externalId: payment.id,
        webhookUrl: `http://127.0.0.1:${server.port}/internal/settled/${shop.node.id}`,
      })
    }
  })

  const long = 'x'.repeat(129)
  const now = (): number => Math.floor(Date.now() / 1000)
  const hash = randomBytes(32).toString('hex')
  const odd: [title: string, reply: () => Reply, description?: string][] = [
    ['MPP 21: one satoshi more', () => made({ millisatoshis: `${AMOUNT + 1}000` })],
    ['MPP 21: one satoshi less', () => made({ millisatoshis: `${AMOUNT - 1}000` })],
    ['MPP 21: one millisatoshi more', () => made({ millisatoshis: `${AMOUNT}001` })],
    ['MPP 21: a thousandth of the amount', () => made({ millisatoshis: String(AMOUNT) })],
    ['MPP 21: any amount', () => made({ millisatoshis: null })],
    ['MPP 21: a hash that differs from the stated one', () => made({}, { paymentHash: hash })],
    [
      'MPP 21: its hash in upper case',
      () => {
        const { serialized, paymentHash } = invoice()
        return { body: { serialized, paymentHash: paymentHash.toUpperCase() } }
      },
    ],
    ['MPP 21: no hash beside it', () => made({}, { paymentHash: undefined })],
    ['MPP 21: a hash that is a number', () => made({}, { paymentHash: 1 })],
    ['MPP 11: of mainnet', () => made({ prefix: 'lnbc' })],
    ['MPP 11: of testnet', () => made({ prefix: 'lntb' })],
    ['MPP 11: of signet', () => made({ prefix: 'lntbs' })],
    ['MPP 11: of an unknown network', () => made({ prefix: 'lnsb' })],
    ['MPP 21: another description', () => made({ description: 'Weather report ' })],
    ['MPP 21: an empty description', () => made({ description: '' })],
    [
      'MPP 21: the hash of a description that is short enough to be there',
      () => made({ description: undefined, descriptionHash: sha256(DESCRIPTION) }),
    ],
    [
      'MPP 21: the hash of another long description',
      () => made({ description: undefined, descriptionHash: sha256(`${long}x`) }),
      long,
    ],
    ['MPP 21: the text of a long description', () => made({ description: long }), long],
    ['C34: expired a moment ago', () => made({ timestamp: now() - 301 })],
    ['C34: expired long ago', () => made({ timestamp: 1_500_000_000 })],
    ['C34: made an hour ago, without an expiry', () => made({ timestamp: now() - 3_601, expiry: undefined })],
    ['C34: cut off', () => made({}, { serialized: invoice().serialized.slice(0, -1) })],
    [
      'C34: with one letter changed',
      () => made({}, { serialized: invoice().serialized.replace(/q(?=.{20}$)|.(?=.{20}$)/, 'b') }),
    ],
    ['C34: in upper case', () => made({}, { serialized: invoice().serialized.toUpperCase() })],
    ['C34: followed by a quote and a header', () => made({}, { serialized: `${invoice().serialized}", realm="x"\r\nX: y` })],
    ['C34: an address', () => made({}, { serialized: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080' })],
    ['C34: nothing', () => made({}, { serialized: '' })],
    ['C34: a number', () => made({}, { serialized: 1 })],
    ['C34: an array of one', () => made({}, { serialized: [invoice().serialized] })],
    ['C34: not JSON', () => ({ body: 'lnbcrt1' })],
    ['C34: null', () => ({ body: 'null' })],
    ['C34: an empty answer', () => ({ body: '' })],
    ['C34: in a response with status 201', () => ({ ...(made() as object), status: 201 }) as Reply],
    ['C34: in a response with status 500', () => ({ ...(made() as object), status: 500 }) as Reply],
    ['C34: 401, as for a wrong password', () => ({ status: 401, body: 'no' })],
    ['C34: a redirect', () => (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
    ['C34: two megabytes', () => ({ body: `${' '.repeat(2 * 1024 * 1024)}${JSON.stringify(invoice())}` })],
    [
      'C34: an endless response',
      () => (response) => {
        response.writeHead(200)
        const more = (): void => {
          while (!response.destroyed && response.write(' '.repeat(65_536)));
        }
        response.on('drain', more).on('error', () => undefined)
        more()
      },
    ],
    ['C34: a connection that closes without a response', () => (response) => response.destroy()],
    ['C34: not HTTP', () => (response) => response.socket?.end('hello\r\n\r\n')],
    [
      'C34: half a response',
      () => (response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('{"serialized":')
        setTimeout(() => response.destroy(), 50)
      },
    ],
  ]
  test.each(odd)('%s: 502, and no payment', async (_title, reply, description) => {
    const before = await count()
    for (const protocol of PROTOCOLS)
      expect(await while_('createinvoice', reply, () => ask(protocol, description))).toEqual([502, 'payment_service_unavailable'])
    expect(await count()).toBe(before)
  })

  test('C34: a node that returns no invoice is checked at once, although its next check is not due', async () => {
    const hanging = await merchant.createReady()
    const { id } = hanging.node
    const sql = server.sql()
    // Only the test has the lease, so the service does not check the node before the test has looked.
    const { giveBack } = await withhold(sql, hanging.node)
    await sql`UPDATE nodes SET next_at = now() + interval '1 hour' WHERE id = ${id}`
    await fault(server, hanging, 'hang')
    const json = { nodeId: id, amountSat: AMOUNT, description: DESCRIPTION }
    expect(await merchant.refusal('POST', '/gateway/payments', { json })).toEqual([502, 'payment_service_unavailable'])
    await eventually(async () => (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND next_at <= now()`).length, 'the check')
    await fault(server, hanging, 'none')
    await giveBack()
  })

  test('C34: a second invoice with the same hash is 502, because one payment would count twice', async () => {
    const same = made()
    for (const protocol of PROTOCOLS) {
      const answers = [
        await while_(
          'createinvoice',
          () => same,
          () => ask(protocol),
        ),
      ]
      answers.push(
        await while_(
          'createinvoice',
          () => same,
          () => ask(protocol),
        ),
      )
      expect(answers.map(([status]) => status)).toEqual(protocol === 'mpp' ? [201, 502] : [502, 502])
      expect(answers[1]).toEqual([502, 'payment_service_unavailable'])
    }
  })

  test('MPP 16, L402 13, C37: an invoice that ends sooner ends its challenge; one that ends later does not prolong it', async () => {
    const shown = async (reply: () => Reply, protocol: Protocol) => {
      const { id, challenge } = await while_('createinvoice', reply, () =>
        charge(merchant, shop, { protocol, amountSat: AMOUNT }),
      )
      const payment = await merchant.want<{ createdAt: number; expiresAt: number }>(200, 'GET', `/gateway/payments/${id}`)
      if (protocol === 'mpp') expect(Date.parse(parametersOf(challenge).expires ?? '') / 1000).toBe(payment.expiresAt)
      return payment
    }
    for (const protocol of PROTOCOLS) {
      const timestamp = now() - 10
      expect((await shown(() => made({ timestamp, expiry: 70 }), protocol)).expiresAt).toBe(timestamp + 70)
      for (const expiry of [3_600, 86_400, undefined]) {
        const { createdAt, expiresAt } = await shown(() => made({ expiry }), protocol)
        expect(expiresAt).toBe(createdAt + 300)
      }
    }
  })

  test('C34: no text from a node reaches the caller or the log', async () => {
    const word = 'sekret-word-of-the-node'
    const replies: Reply[] = [{ status: 500, body: word }, { body: { serialized: word, paymentHash: hash } }, { body: word }]
    for (const reply of replies) {
      const json = { nodeId: shop.node.id, amountSat: AMOUNT, description: DESCRIPTION }
      const answered = await while_(
        'createinvoice',
        () => reply,
        () => merchant.send('POST', '/gateway/payments', { json }),
      )
      expect([answered.status, answered.text.includes(word)]).toEqual([502, false])
    }
    expect(server.stderr).not.toContain(word)
  })
})

describe('an x402 invoice', () => {
  const bindingTo = { description: undefined, descriptionHash: REPORT }
  const inFuture = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds
  /** Signed by the node itself, unless another key is given. */
  const signed = (changes: Partial<Terms> = {}, privateKey?: string): Reply => {
    const own = Buffer.from(nodeKeysOf(shop.credentials.seed).privateKey).toString('hex')
    return { body: invoice({ ...bindingTo, ...changes }, privateKey ?? own) }
  }
  const create = async (reply: () => Reply): Promise<[status: number, code: string]> => {
    const json = { nodeId: shop.node.id, amountSat: AMOUNT, description: DESCRIPTION, protocol: 'x402', x402: bound() }
    const answer = await while_('createinvoice', reply, () => merchant.send('POST', '/gateway/payments', { json }))
    return [answer.status, answer.json().error?.code]
  }

  test('C62: the node is asked for an invoice with the hash of the request, and none with its description', async () => {
    expect(await create(() => signed())).toEqual([201, undefined])
    const [form] = forms
    expect([form?.get('descriptionHash'), form?.get('description'), form?.get('expirySeconds')]).toEqual([REPORT, null, '300'])
    const timestamp = inFuture(55)
    expect(await create(() => signed({ timestamp }))).toEqual([201, undefined])
    // The payment expires when its invoice does, even if the node's clock is ahead.
    const { payments } = await merchant.want<{ payments: { expiresAt: number }[] }>(200, 'GET', '/gateway/payments?limit=1')
    expect(payments[0]?.expiresAt).toBe(timestamp + 300)
  })

  test.each<[what: string, reply: () => Reply]>([
    ['signed by another node', () => signed({}, '1'.repeat(64))],
    ['with a description', () => signed({ description: DESCRIPTION, descriptionHash: undefined })],
    ['with the hash of another request', () => signed({ descriptionHash: sha256('x') })],
    ['with the hash of the description', () => signed({ descriptionHash: sha256(DESCRIPTION) })],
    ['with another amount', () => signed({ millisatoshis: `${AMOUNT}001` })],
    ['of another network', () => signed({ prefix: 'lnbc' })],
    ['with a shorter expiry', () => signed({ expiry: 299 })],
    ['with a longer expiry', () => signed({ expiry: 301 })],
    ['without an expiry', () => signed({ expiry: undefined })],
    ['from the future', () => signed({ timestamp: inFuture(120) })],
    ['that has expired', () => signed({ timestamp: inFuture(-301) })],
  ])('C62: %s: 502, and no payment', async (_what, reply) => {
    const before = await count()
    expect(await create(reply)).toEqual([502, 'payment_service_unavailable'])
    expect(await count()).toBe(before)
  })
})

describe('a node with an invalid answer about a payment', () => {
  test.each(PROTOCOLS)(
    'C38, MPP 49, L402 48: counts as one that has not answered: 502, nothing changes, and its correct answer counts later (%s)',
    async (protocol) => {
      const payment = await charge(merchant, shop, { protocol })
      const preimage = await preimageFrom(shop, payment)
      const credential = credentialOf(payment, preimage)
      const { paymentHash } = decoded(invoiceIn(payment.challenge))
      const before = await rowOf(server, payment.id)
      const completedAt = Date.now()
      const good = { type: 'incoming_payment', paymentHash, preimage, isPaid: true, completedAt, receivedSat: 1000, fees: 0 }
      const nonsense: Reply[] = [
        { status: 404, body: 'Not found' },
        { status: 500, body: good },
        { status: 401, body: good },
        { body: { ...good, paymentHash: randomBytes(32).toString('hex') } },
        { body: { ...good, paymentHash: undefined } },
        { body: { ...good, isPaid: 'true' } },
        { body: { ...good, isPaid: 1 } },
        { body: { ...good, isPaid: undefined } },
        { body: { ...good, completedAt: undefined } },
        { body: { ...good, completedAt: 'yesterday' } },
        { body: { ...good, completedAt: 0 } },
        { body: { ...good, completedAt: -1 } },
        { body: { ...good, completedAt: 1.5 } },
        { body: { ...good, completedAt: Number.MAX_SAFE_INTEGER } },
        { body: [good] },
        { body: 'null' },
        { body: '{' },
        { body: '' },
        { body: `${' '.repeat(2 * 1024 * 1024)}${JSON.stringify(good)}` },
        (response) => response.destroy(),
      ]
      for (const reply of nonsense) {
        const { status, json } = await while_(
          'payments',
          () => reply,
          () => validate(merchant, payment.id, credential),
        )
        expect([reply, status, json().error.code]).toEqual([reply, 502, 'payment_service_unavailable'])
      }
      expect(await rowOf(server, payment.id)).toEqual(before)
      expect(await pay(server, payment)).toBe(preimage)
      expect((await validate(merchant, payment.id, credential)).status).toBe(200)
    },
  )

  test('C38: isPaid alone decides, whatever the node says about the amount after fees and everything else', async () => {
    const payment = await charge(merchant, shop)
    const preimage = await preimageFrom(shop, payment)
    const { paymentHash } = decoded(invoiceIn(payment.challenge))
    const body = { paymentHash, isPaid: true, completedAt: 1_794_721_208_537, receivedSat: 1, fees: 999_000, isExpired: true }
    const answered = await while_(
      'payments',
      () => ({ body }),
      () => validate(merchant, payment.id, credentialOf(payment, preimage)),
    )
    const receipt = JSON.parse(Buffer.from(answered.json().receipt, 'base64url').toString('utf8'))
    expect(receipt.timestamp).toBe('2026-11-15T05:40:08.537Z')
  })
})

describe('queries caused by a node’s own events', () => {
  const secretOf = (): string =>
    /^webhook-secret=(.+)$/m.exec(readFileSync(join(server.dataDir, 'nodes', shop.node.id, 'phoenix.conf'), 'utf8'))?.[1] ?? ''
  const tell = async (paymentHash: string): Promise<number> => {
    const body = JSON.stringify({ type: 'payment_received', amountSat: AMOUNT, paymentHash })
    const signature = createHmac('sha256', secretOf()).update(body).digest('hex')
    return (await report(server, shop.node.id, body, { 'x-phoenix-signature': signature })).status
  }
  const openHash = async (): Promise<string> => decoded(invoiceIn((await charge(merchant, shop)).challenge)).paymentHash
  /** How often the node was asked about one of these invoices, and the highest number of queries at a time. */
  async function asksAbout(hashes: string[], act: () => Promise<void>): Promise<{ asks: number; atOnce: number }> {
    let [asks, now, atOnce] = [0, 0, 0]
    const unpaid: Reply = (response) => {
      if (!hashes.some((hash) => response.req.url?.includes(hash))) return void response.writeHead(404).end()
      asks++
      atOnce = Math.max(atOnce, ++now)
      // Also emitted if the service stops waiting.
      response.once('close', () => now--)
      // Long enough for the other queries to arrive.
      setTimeout(() => {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ paymentHash: hashes[0], isPaid: false }))
      }, 300)
    }
    await while_('payments', () => unpaid, act)
    return { asks, atOnce }
  }

  test('security 7: two bursts of a hundred events about one invoice cause only a few queries', async () => {
    const hash = await openHash()
    await notAsked([hash])
    const { asks } = await asksAbout([hash], async () => {
      for (const _ of ['at once', 'right after'])
        expect(new Set(await Promise.all(Array.from({ length: 100 }, () => tell(hash))))).toEqual(new Set([204]))
    })
    // The first event causes one query. In each second that passes, the sweep and another event may each cause one more.
    expect(asks).toBeGreaterThanOrEqual(1)
    expect(asks).toBeLessThan(100)
  })

  test('C38: concurrent validations of one payment cause one query at a time', async () => {
    const payment = await charge(merchant, shop)
    const hash = decoded(invoiceIn(payment.challenge)).paymentHash
    const credential = credentialOf(payment, await preimageFrom(shop, payment))
    await notAsked([hash])
    const { asks, atOnce } = await asksAbout([hash], async () => {
      const answers = await Promise.all(Array.from({ length: 50 }, () => validate(merchant, payment.id, credential)))
      // 502 because, on a busy machine, two seconds may not be enough for a query.
      for (const { status } of answers) expect([400, 502]).toContain(status)
    })
    expect([asks > 0, atOnce]).toEqual([true, 1])
  })

  test('security 7: events about unknown invoices cause no query', async () => {
    const hashes = Array.from({ length: 50 }, () => randomBytes(32).toString('hex'))
    const { asks } = await asksAbout(hashes, async () => {
      expect(new Set(await Promise.all(hashes.map(tell)))).toEqual(new Set([204]))
    })
    expect(asks).toBe(0)
  })

  test('security 7: concurrent events about many open invoices cause a few queries at a time', async () => {
    const hashes: string[] = []
    for (let count = 0; count < 80; count++) hashes.push(await openHash())
    await notAsked(hashes)
    const { asks, atOnce } = await asksAbout(hashes, async () => {
      expect(new Set(await Promise.all(hashes.map(tell)))).toEqual(new Set([204]))
    })
    // The number does not matter: on a busy machine, some queries time out before they reach the node.
    expect(asks).toBeGreaterThan(0)
    // At most 32 queries because of events, and eight of the sweep.
    expect(atOnce).toBeLessThanOrEqual(40)
  })

  const notAsked = async (hashes: string[]): Promise<void> => {
    await storeOf(server)`
      UPDATE gateway_payments SET ask_at = now() + interval '1 hour'
      WHERE settled_at IS NULL AND encode(payment_hash, 'hex') = ANY (${hashes})`
  }
})

test.each<[what: string, reply: Reply]>([
  ['does not know it', { status: 404, body: '' }],
  ['answers with an error', { status: 500, body: 'oops' }],
  ['answers with invalid JSON', { body: 'not JSON' }],
])('C50: a challenge is kept for good when the node %s', async (_what, reply) => {
  const sql = storeOf(server)
  const { id } = await charge(merchant, shop)
  const state = async (): Promise<Record<string, unknown> | undefined> =>
    (await sql`SELECT ask_at, unpaid_at FROM gateway_payments WHERE id = ${id}`)[0]
  // As if the node had reported the invoice as unpaid before: only its latest answer counts.
  await while_(
    'payments',
    () => reply,
    async () => {
      await sql`UPDATE gateway_payments SET expires_at = now() - interval '2 days', ask_at = now(), unpaid_at = now() WHERE id = ${id}`
      await eventually(async () => (await state())?.ask_at === null, 'the last ask')
    },
  )
  expect(await state()).toEqual({ ask_at: null, unpaid_at: null })
  while ((await removeUnpaidPayments(sql, 100)) > 0);
  expect(await state()).toBeDefined()
})
