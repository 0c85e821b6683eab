import { describe, expect, test } from 'vitest'
import { withFields } from '../../../protocol/test/support/x402.ts'
import { run } from '../harness.ts'
import { base64url, type Faults, NODE_KEY, OTHER_KEY, PRICE_SAT, Shop, sha256, withOrder } from './shop.ts'

const NO_DISCOVERY: NonNullable<Faults['serve']> = ({ url }) => (url === '/report' ? undefined : { status: 404 })
const withCredential =
  (reply: { status: number }): NonNullable<Faults['serve']> =>
  ({ headers }) =>
    headers.authorization?.startsWith('Payment ') && !headers['payment-signature'] ? reply : undefined

type Planted = [id: string | string[], fault: string, faults: Faults]

/** A payee that is not a key: tag 19, a length of 53 words, zeros. */
const NO_KEY = [19, 1, 21, ...Array<number>(53).fill(0)]

const IN_INVOICES: Planted[] = [
  [
    'invoice-signature',
    'the invoice was changed after it was signed',
    { invoiceText: (text, to) => (to === 'l402' ? withFields(NO_KEY, text) : text) },
  ],
  [
    'invoice-malformed',
    'the L402 invoice has a typing error',
    { invoiceText: (text, to) => (to === 'l402' ? `${text.slice(0, -1)}b` : text) },
  ],
  [
    'invoice-no-amount',
    'the L402 invoice leaves the amount to the payer',
    { invoice: (wish, to) => (to === 'l402' ? { ...wish, sat: undefined } : wish) },
  ],
  [
    'invoice-expired',
    'the L402 invoice expired an hour ago',
    { invoice: (wish, to) => (to === 'l402' ? { ...wish, timestamp: wish.timestamp - 3_900 } : wish) },
  ],
  [
    'invoice-short-lived',
    'the L402 invoice is valid for 20 s',
    { invoice: (wish, to) => (to === 'l402' ? { ...wish, expirySeconds: 20 } : wish) },
  ],
  [
    'clock-skew',
    'the node’s clock is ten minutes fast',
    { invoice: (wish, to) => (to === 'l402' ? { ...wish, timestamp: wish.timestamp + 600 } : wish) },
  ],
  [
    'invoice-reused',
    'every visit gets the same L402 invoice',
    { invoice: (wish, to) => (to === 'l402' ? { ...wish, paymentHash: 'ab'.repeat(32) } : wish) },
  ],
  [
    ['discovery-price', 'prices-differ'],
    'L402 costs more than is advertised',
    { invoice: (wish, to) => (to === 'l402' ? { ...wish, sat: 26 } : wish) },
  ],
  [['networks-differ'], 'L402 is on testnet', { invoice: (wish, to) => (to === 'l402' ? { ...wish, prefix: 'tb' } : wish) }],
  [
    'discovery-node-key',
    'a node other than the one in l402.json signs the invoices',
    { l402Json: (one) => ({ ...one, provider: { node_pubkey: OTHER_KEY } }) },
  ],
]

const LONG = 'x'.repeat(6_400)

const IN_MPP: Planted[] = [
  [
    'mpp-size',
    'the challenge is longer than clients must accept',
    {
      invoice: (wish, to) => (to === 'mpp' ? { ...wish, description: undefined, descriptionHash: sha256(LONG) } : wish),
      request: (one) => ({ ...one, description: LONG }),
    },
  ],
  ['mpp-amount', 'the request says less than the invoice', { request: (one) => ({ ...one, amount: '1' }) }],
  ['mpp-currency', 'the request is in dollars', { request: (one) => ({ ...one, currency: 'usd' }) }],
  [
    'mpp-payment-hash',
    'the request names another payment hash',
    { request: (one) => ({ ...one, methodDetails: { ...one.methodDetails, paymentHash: '00'.repeat(32) } }) },
  ],
  [
    'mpp-network',
    'the request says regtest, the invoice is of mainnet',
    { request: (one) => ({ ...one, methodDetails: { ...one.methodDetails, network: 'regtest' } }) },
  ],
  [
    'mpp-description',
    'the request and the invoice describe different things',
    { request: (one) => ({ ...one, description: 'A bicycle' }) },
  ],
  [
    'mpp-not-canonical',
    'the keys of the request are not in order',
    {
      parameters: (one) => ({
        ...one,
        request: base64url(
          Object.fromEntries(Object.entries(JSON.parse(Buffer.from(one.request ?? '', 'base64url').toString())).reverse()),
        ),
      }),
    },
  ],
  ['mpp-no-expires', 'the challenge has no expiry', { parameters: ({ expires: _, ...one }) => one }],
  ['mpp-expires', 'the challenge outlives its invoice', { parameters: (one) => ({ ...one, expires: '2099-01-01T00:00:00Z' }) }],
  [
    'mpp-header',
    'the credential should go into a header of the seller’s own',
    { parameters: (one) => ({ ...one, header: 'X-Pay' }) },
  ],
  ['mpp-malformed', 'the request is not JSON', { parameters: (one) => ({ ...one, request: 'AAAA' }) }],
]

const IN_L402: Planted[] = [
  [
    'l402-payment-hash',
    'the macaroon is for another invoice',
    { identifier: (bytes) => Buffer.concat([Buffer.alloc(34), bytes.subarray(34)]) },
  ],
  ['l402-macaroon', 'the identifier is too short', { identifier: (bytes) => bytes.subarray(0, 65) }],
  ['l402-form', 'the invoice comes first', { l402: (text) => text.replace(/^L402 (macaroon=\S+), (.*)$/, 'L402 $2, $1') }],
  ['l402-malformed', 'there is no macaroon', { l402: (text) => text.replace(/macaroon=\S+ /, '') }],
  [
    'offer-order',
    'Payment comes before L402',
    { headers: (one) => ({ ...one, 'www-authenticate': [one['www-authenticate'] ?? []].flat().reverse() }) },
  ],
]

const changed = (change: (entry: any) => object): Faults => ({
  x402: (one) => ({ ...one, accepts: one.accepts.map((entry: any) => ({ ...entry, ...change(entry) })) }),
})
const IN_X402: Planted[] = [
  ['x402-pay-to', 'payTo is another node', changed(() => ({ payTo: OTHER_KEY }))],
  ['x402-amount', 'the amount is in satoshis', changed(() => ({ amount: String(PRICE_SAT) }))],
  ['x402-expiry', 'maxTimeoutSeconds is not the invoice’s expiry', changed(() => ({ maxTimeoutSeconds: 60 }))],
  ['x402-network', 'the network is testnet', changed(() => ({ network: 'lnbtc:000000000933ea01ad0ee984209779ba' }))],
  ['x402-terms', 'the flow is unknown', changed(({ extra }) => ({ extra: { ...extra, paymentFlow: 'later' } }))],
  [
    ['x402-description', 'x402-request-hash'],
    'requestHash belongs to another request',
    changed(({ extra }) => ({ extra: { ...extra, requestHash: '00'.repeat(32) } })),
  ],
  [
    'x402-description',
    'the invoice has a description and no hash',
    { invoice: (wish, to) => (to === 'x402' ? { ...wish, descriptionHash: undefined, description: 'A report' } : wish) },
  ],
  [
    'invoice-malformed',
    'the invoice has a typing error',
    { invoiceText: (text, to) => (to === 'x402' ? `${text.slice(0, -1)}b` : text) },
  ],
  ['invoice-malformed', 'the invoice is a number', changed(({ extra }) => ({ extra: { ...extra, invoice: 1 } }))],
  ['invoice-malformed', 'there is no invoice', changed(({ extra: { invoice: _, ...extra } }) => ({ extra }))],
  [
    'x402-url',
    'the shop does not know its public URL',
    { x402: (one) => ({ ...one, resource: { url: 'http://internal:3000/report' } }) },
  ],
  ['x402-malformed', 'PAYMENT-REQUIRED is of version 1', { x402: (one) => ({ ...one, x402Version: 1 }) }],
]

const IN_RESPONSES: Planted[] = [
  [
    '402-cacheable',
    'a 402 may be stored for a minute',
    { headers: (one) => ({ ...one, 'cache-control': 'public, max-age=60' }) },
  ],
  ['402-cacheable', 'a 402 says nothing about caches', { headers: ({ 'cache-control': _, ...one }) => one }],
  [
    'cors-expose',
    'scripts in browsers cannot read PAYMENT-REQUIRED',
    { headers: (one) => ({ ...one, 'access-control-expose-headers': 'WWW-Authenticate' }) },
  ],
  [
    'cors-allow',
    'scripts in browsers cannot send Authorization',
    {
      serve: ({ method }) =>
        method === 'OPTIONS' ? { status: 204, headers: { 'access-control-allow-headers': '*' } } : undefined,
    },
  ],
  [
    'options-charged',
    'OPTIONS is charged',
    { serve: ({ method, url = '' }, shop) => (method === 'OPTIONS' ? shop.paymentRequired(method, url) : undefined) },
  ],
  ['head-status', 'HEAD is free', { serve: ({ method }) => (method === 'HEAD' ? { status: 200 } : undefined) }],
  ['clock-skew', 'the server’s clock is wrong', { headers: (one) => ({ ...one, date: 'Sat, 01 Jan 2000 00:00:00 GMT' }) }],
  [['forged-credential', 'malformed-credential'], 'every MPP credential is accepted', { serve: withCredential({ status: 200 }) }],
  [
    ['forged-credential', 'malformed-credential'],
    'an MPP credential makes the server fail',
    { serve: withCredential({ status: 500 }) },
  ],
  [
    'malformed-credential',
    'a malformed MPP credential makes the server fail',
    { serve: ({ headers }) => (headers.authorization === 'Payment bm90IGpzb24' ? { status: 500 } : undefined) },
  ],
  [
    'two-credentials',
    'two credentials are taken for none',
    {
      serve: ({ method = '', url = '', headers }, shop) =>
        headers.authorization && headers['payment-signature'] ? shop.paymentRequired(method, url) : undefined,
    },
  ],
  [
    ['challenge-malformed', 'discovery-offer-missing'],
    'WWW-Authenticate has a quote too many',
    { headers: (one) => ({ ...one, 'www-authenticate': 'Payment id="a"b"' }) },
  ],
  ['discovery-link', 'the Link leads nowhere', { headers: (one) => ({ ...one, link: '</gone>; rel="service-desc"' }) }],
]

const IN_DISCOVERY: Planted[] = [
  [
    'discovery-offer-missing',
    'l402.json is there, but the 402 has no L402 challenge',
    { headers: (one) => ({ ...one, 'www-authenticate': [one['www-authenticate'] ?? []].flat().slice(1) }) },
  ],
  [
    ['discovery-contradiction', 'discovery-price'],
    'l402.json has an old price',
    { l402Json: (one) => JSON.parse(JSON.stringify(one).replace('25000', '24000')) },
  ],
  [
    'discovery-402-undeclared',
    'openapi.json does not declare the 402',
    { openapi: (one) => JSON.parse(JSON.stringify(one).replace('"402"', '"200"')) },
  ],
  [
    'unadvertised-charge',
    'openapi.json does not say that the report costs something',
    {
      openapi: (one) => ({ ...one, paths: { '/report': { get: {} } } }),
      l402Json: () => ({ services: [], provider: { node_pubkey: NODE_KEY } }),
    },
  ],
  [
    'not-charged',
    'what is advertised as paid is free',
    { serve: ({ method, url }) => (url === '/report' && method === 'GET' ? { status: 200, body: 'for nothing' } : undefined) },
  ],
  ['unexpected-status', 'what is advertised is gone', { serve: ({ url }) => (url === '/report' ? { status: 410 } : undefined) }],
  ['server-error', 'what is advertised fails', { serve: ({ url }) => (url === '/report' ? { status: 500 } : undefined) }],
  ['discovery-malformed', 'openapi.json is not an object', { openapi: () => 'soon' }],
  [
    'discovery-charged',
    'openapi.json is charged',
    {
      serve: ({ method = '', url = '' }, shop) => (url === '/openapi.json' ? shop.paymentRequired(method, url) : undefined),
      headers: ({ link: _, ...one }) => one,
    },
  ],
  [
    'no-offer',
    'a 402 without any challenge',
    {
      serve: (request, shop) =>
        NO_DISCOVERY(request, shop) ??
        (request.url === '/report' && request.method !== 'OPTIONS'
          ? { status: 402, headers: { 'cache-control': 'no-store' } }
          : undefined),
    },
  ],
]

async function found(faults: Faults): Promise<{ code: number | null; ids: string[]; findings: any[]; error: any }> {
  const shop = await Shop.open(faults)
  const ended = await run(['check', `${shop.origin}/report`])
  const { findings } = ended.json()
  return {
    code: ended.code,
    findings,
    ids: [...new Set<string>(findings.map(({ id }: any) => id))].sort(),
    error: ended.stderr && ended.error(),
  }
}

test('a sound shop with three protocols, discovery and CORS, has no findings: exit 0', async () => {
  expect(await found({ openapi: withOrder })).toEqual({ code: 0, ids: [], findings: [], error: '' })
})

test('a credential in Payment-Authorization is as good as one in Authorization', async () => {
  const seen: unknown[] = []
  const serve: Faults['serve'] = ({ method, headers }) => {
    seen.push(headers['payment-authorization'])
    const allowed = { 'access-control-allow-headers': 'authorization, payment-authorization, payment-signature' }
    return method === 'OPTIONS'
      ? { status: 204, headers: allowed }
      : headers['payment-authorization'] && headers['payment-signature']
        ? { status: 400 }
        : undefined
  }
  // L402 credentials are still sent in Authorization.
  expect(await found({ serve, parameters: (one) => ({ ...one, header: 'Payment-Authorization' }) })).toMatchObject({
    code: 0,
    ids: [],
  })
  expect(seen.filter((credential) => credential !== undefined).length).toBeGreaterThan(1)
})

test.each([
  ['in upper case', (text: string) => text.toUpperCase(), /^x402: "LNBC250N1P…"$/],
  ['in a link', (text: string) => `lightning:${text}`, /^x402: "lightning:…"$/],
  ['after a space', (text: string) => ` ${text}`, /^x402: " lnbc250n1…"$/],
])('x402 clients refuse an invoice %s, so there is one finding, the same for all visits', async (_how, written, seen) => {
  const { code, findings } = await found({ invoiceText: (text, to) => (to === 'x402' ? written(text) : text) })
  expect({ code, findings }).toEqual({
    code: 9,
    findings: [
      {
        id: 'invoice-malformed',
        severity: 'error',
        operation: 'GET /report',
        seen: expect.stringMatching(seen),
        expected: 'an invoice in lowercase, without "lightning:" or spaces',
        fix: 'Pass the node’s invoice on unchanged.',
      },
    ],
  })
})

test('without /openapi.json, the document that the 402 links to is read', async () => {
  const moved: Faults['serve'] = ({ url }) => (url === '/openapi.json' ? { status: 404 } : undefined)
  const document = {
    paths: {
      '/gone': { get: { 'x-payment-info': { offers: [{ method: 'lightning', amount: '25' }] }, responses: { 402: {} } } },
    },
  }
  const { ids, findings } = await found({
    serve: (request, shop) =>
      moved(request, shop) ?? (request.url === '/v2/api.json' ? { status: 200, body: JSON.stringify(document) } : undefined),
    headers: (one) => ({ ...one, link: '</v2/api.json>; rel="service-desc"' }),
  })
  expect([ids, findings[0].operation]).toEqual([['unexpected-status'], 'GET /gone'])
})

describe.each([
  ['invoices', IN_INVOICES],
  ['MPP', IN_MPP],
  ['L402', IN_L402],
  ['x402', IN_X402],
  ['responses', IN_RESPONSES],
  ['discovery', IN_DISCOVERY],
])('%s: each planted fault is found, nothing else is, and the exit code is 9', (_where, planted) => {
  test.each(planted.map(([id, fault, faults]) => ({ id, fault, faults })))('$id: $fault', async ({ id, faults }) => {
    const { code, ids, findings, error } = await found(faults)
    expect({ code, ids }).toEqual({ code: 9, ids: [id].flat() })
    const text = expect.stringMatching(/\S/)
    for (const finding of findings)
      expect(finding).toEqual({
        id: text,
        severity: expect.stringMatching(/^(error|warning)$/),
        operation: text,
        seen: text,
        expected: text,
        fix: text,
      })
    expect(error).toMatchObject({ code: 'findings', message: expect.stringMatching(/ found\.$/) })
  })
})
