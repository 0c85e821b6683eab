import { decode as readWithBolt11 } from 'bolt11'
import { describe, expect, test } from 'vitest'
import { Hopeless } from '../../../testing/eventually.ts'
import { newId } from '../../src/platform/ids.ts'
import {
  charge,
  decoded,
  invoiceIn,
  macaroonIn,
  newMerchant,
  parametersOf,
  pay,
  requestIn,
  sha256,
  storeOf,
} from '../support/gateway.ts'
import { type Created, fault, newOwner, Owner, withhold } from '../support/nodes.ts'
import { type Answer, eventually, type Server, startServer } from '../support/server.ts'
import {
  ask,
  BAD,
  invoicesMade,
  LIFETIME,
  MAX_SAT,
  merchant,
  PROTOCOLS,
  paymentsKept,
  refusal,
  rival,
  type Shown,
  server,
  shop,
  stall,
  times,
  wish,
} from '../support/shop.ts'

describe('a challenge', () => {
  test('MPP 1, MPP 23: 201 with four fields, mpp by default, and not cacheable', async () => {
    for (const protocol of [undefined, 'mpp']) {
      const answer = await ask(wish({ protocol }))
      expect([answer.status, answer.headers['cache-control']]).toEqual([201, 'no-store'])
      expect(answer.json()).toEqual({
        id: expect.stringMatching(/^pay_[0-9a-hjkmnp-tv-z]{20}$/),
        protocol: 'mpp',
        status: 'payment_required',
        challenge: expect.stringMatching(/^Payment /),
      })
    }
  })

  test('L402 1, L402 18: 201 with four fields, and not cacheable', async () => {
    const answer = await ask(wish({ protocol: 'l402' }))
    expect([answer.status, answer.headers['cache-control']]).toEqual([201, 'no-store'])
    expect(answer.json()).toEqual({
      id: expect.stringMatching(/^pay_[0-9a-hjkmnp-tv-z]{20}$/),
      protocol: 'l402',
      status: 'payment_required',
      challenge: expect.stringMatching(/^L402 /),
    })
  })

  test('MPP 3, MPP 4, MPP 5: six parameters, once each, in this order; the realm is the host at which clients reach the service', async () => {
    const { challenge } = await charge(merchant, shop)
    expect(challenge).toMatch(
      /^Payment id="[\w-]{43}", realm="[^"|\\]+", method="lightning", intent="charge", request="[\w-]+", expires="[^"]+"$/,
    )
    expect(Object.keys(parametersOf(challenge))).toEqual(['id', 'realm', 'method', 'intent', 'request', 'expires'])
    expect(parametersOf(challenge).realm).toBe(new URL(server.url).host)
  })

  test('MPP 6, MPP 7, MPP 8, MPP 10, MPP 11, MPP 13, MPP 14: the request is canonical JSON with the terms and nothing else', async () => {
    const payment = await charge(merchant, shop, { amountSat: 21_000_000, description: 'Ünïcode "quoted" \\ 😀 \u00a0 %20+&=' })
    const { request = '' } = parametersOf(payment.challenge)
    const invoice = invoiceIn(payment.challenge)
    const { paymentHash } = decoded(invoice)
    expect(paymentHash).toMatch(/^[0-9a-f]{64}$/)
    // Names sorted at both levels, and no spaces: if all values are strings, canonical JSON requires nothing else.
    const canonical = JSON.stringify({
      amount: '21000000',
      currency: 'sat',
      description: 'Ünïcode "quoted" \\ 😀 \u00a0 %20+&=',
      externalId: payment.id,
      methodDetails: { invoice, network: 'regtest', paymentHash },
    })
    expect(Buffer.from(request, 'base64url').toString('utf8')).toBe(canonical)
    expect(request).toBe(Buffer.from(canonical).toString('base64url'))
  })

  test.each(PROTOCOLS)(
    'MPP 9, MPP 10, MPP 12, L402 7: two independent decoders read our terms from the invoice (%s)',
    async (protocol) => {
      const description = 'Coffee ☕ "to go" — 2×'
      const { challenge } = await charge(merchant, shop, { protocol, amountSat: 123_457, description })
      const invoice = invoiceIn(challenge)
      expect(decoded(invoice)).toMatchObject({ prefix: 'bcrt', amountMsat: '123457000', description, descriptionHash: undefined })
      const { millisatoshis, prefix, tagsObject } = readWithBolt11(invoice)
      expect([millisatoshis, prefix?.slice(0, 6)]).toEqual(['123457000', 'lnbcrt'])
      expect(tagsObject).toMatchObject({ description, payment_hash: decoded(invoice).paymentHash })
    },
  )

  test('MPP 15, L402 13, C37: it is valid for 300 s, and never longer than its invoice, which was requested with the same expiry', async () => {
    for (const protocol of PROTOCOLS) {
      const before = Math.floor(Date.now() / 1000)
      const { id, challenge } = await charge(merchant, shop, { protocol })
      const { timestamp, expiry } = decoded(invoiceIn(challenge))
      const { createdAt, expiresAt } = await merchant.want<Shown>(200, 'GET', `/gateway/payments/${id}`)
      expect(expiry).toBe(LIFETIME)
      expect(expiresAt).toBe(Math.min(createdAt + LIFETIME, timestamp + expiry))
      expect(createdAt).toBeGreaterThanOrEqual(before)
      expect(createdAt).toBeLessThanOrEqual(Date.now() / 1000)
      if (protocol === 'mpp')
        expect(parametersOf(challenge).expires).toBe(new Date(expiresAt * 1000).toISOString().replace('.000', ''))
    }
  })

  test('L402 2, L402 3, L402 5, L402 6: the macaroon is padded base64, and its identifier of 66 bytes contains this invoice’s hash', async () => {
    const { challenge } = await charge(merchant, shop, { protocol: 'l402' })
    expect(challenge).toMatch(/^L402 macaroon="[A-Za-z0-9+/]+={0,2}", invoice="ln[a-z0-9]+"$/)
    const base64 = parametersOf(challenge).macaroon ?? ''
    expect([base64.length % 4, macaroonIn(challenge).toString('base64')]).toEqual([0, base64])
    const [head, identifier] = [macaroonIn(challenge).subarray(0, 13), macaroonIn(challenge).subarray(13, 79)]
    expect(head.toString('latin1')).toBe('\x02\x01\x08boltyard\x02\x42')
    expect(identifier.subarray(0, 34).toString('hex')).toBe(`0000${decoded(invoiceIn(challenge)).paymentHash}`)
  })

  test('L402 11, L402 12: three caveats, and valid for a day unless the deployment sets another lifetime', async () => {
    const { id, challenge } = await charge(merchant, shop, { protocol: 'l402' })
    const { createdAt } = await merchant.want<Shown>(200, 'GET', `/gateway/payments/${id}`)
    const caveats = ['services=boltyard:0', `boltyard_valid_until=${createdAt + 86_400}`, `payment_id=${id}`]
    const bytes = caveats.map((caveat) => `\x02${String.fromCharCode(caveat.length)}${caveat}\0`).join('')
    expect(macaroonIn(challenge).subarray(79, -32).toString('latin1')).toBe(`\0${bytes}\0\x06\x20`)
  })

  test('MPP 18, L402 8, L402 9: two identical requests create two payments that share nothing', async () => {
    for (const protocol of PROTOCOLS) {
      const both = [await charge(merchant, shop, { protocol }), await charge(merchant, shop, { protocol })]
      const [one, other] = both.map(({ id, challenge }) => {
        const invoice = invoiceIn(challenge)
        const macaroon = macaroonIn(challenge)
        const own = protocol === 'mpp' ? [parametersOf(challenge).id] : [hex(macaroon, 47, 79), hex(macaroon, -32)]
        return [id, invoice, decoded(invoice).paymentHash, ...own]
      })
      expect(one?.filter((value) => other?.includes(value))).toEqual([])
      expect(one).not.toContain('')
    }
  })

  test('MPP 20: one line of printable ASCII below 8 KB, even with the longest description', async () => {
    for (const protocol of PROTOCOLS) {
      const { challenge } = await charge(merchant, shop, { protocol, amountSat: MAX_SAT, description: '\u{10ffff}'.repeat(500) })
      expect(challenge).toMatch(/^[\x20-\x7e]+$/)
      expect(challenge.length).toBeLessThan(8 * 1024)
    }
  })
})

const hex = (bytes: Buffer, from: number, to?: number): string => bytes.subarray(from, to).toString('hex')

describe('C34: the order of checks', () => {
  test('C34: an invalid body is a 400, whatever the node', async () => {
    expect(await refusal(wish({ nodeId: stall.node.id, amountSat: 0 }))).toEqual(BAD)
    expect(await refusal(wish({ nodeId: 'nothing', description: ' ' }))).toEqual(BAD)
  })

  test('C34: unknown, another account’s and deleted nodes are the same 404, and so is any invalid id', async () => {
    const gone = await merchant.createReady({ name: 'gone' })
    await merchant.want(204, 'DELETE', `/nodes/${gone.node.id}`)
    const ids = [newId('node'), stall.node.id, gone.node.id, newId('pay'), '', '\0', '../nodes', shop.node.id.toUpperCase()]
    const answers = await Promise.all([...ids, 'x'.repeat(10_000)].map((nodeId) => ask(wish({ nodeId }))))
    const [first] = answers
    expect(first?.json()).toEqual({ error: { code: 'node_not_found', message: expect.any(String) } })
    expect(answers.map(({ status, text }) => [status, text])).toEqual(answers.map(() => [404, first?.text]))
  })

  test('C34: a node that is not ready cannot be paid: 502 until it is', async () => {
    const { node } = await merchant.createReady({ name: 'slow to rise' })
    const unavailable = [502, 'payment_service_unavailable']
    // The node is set back to provisioning, and stays so until the request is answered.
    const { giveBack } = await withhold(storeOf(server), node, 'provisioning')
    expect(await refusal(wish({ nodeId: node.id }))).toEqual(unavailable)
    await giveBack()
    await merchant.until(node.id, 'ready')
    expect((await ask(wish({ nodeId: node.id }))).status).toBe(201)
    await merchant.act(node.id, 'stop')
    expect(await refusal(wish({ nodeId: node.id }))).toEqual(unavailable)
    expect(await refusal(wish({ nodeId: node.id, amountSat: 0 }))).toEqual(BAD)
    expect(await refusal(wish({ nodeId: node.id }), rival)).toEqual([404, 'node_not_found'])
    await merchant.act(node.id, 'start')
    expect((await ask(wish({ nodeId: node.id }))).status).toBe(201)
    await merchant.delete(node.id)
  })

  test('C34, C41: a hung node has 5 s to answer, no one else waits for it, and the attempt leaves nothing behind', async () => {
    const hung = await merchant.createReady({ name: 'hung' })
    const { giveBack } = await withhold(storeOf(server), hung.node)
    await fault(server, hung, 'hang')
    const keptOf = async ({ node }: Created): Promise<number> =>
      (await storeOf(server)`SELECT 1 FROM gateway_payments WHERE node_id = ${node.id}`).length
    let key = {}
    let rounds = 0
    // Requests for other nodes must be answered within the five seconds that the hung node has. On a busy machine they may take longer;
    // then the round is repeated.
    const [theirs, ours, again] = await eventually(async () => {
      key = { 'idempotency-key': `while it hangs, ${rounds++}` }
      const start = performance.now()
      let isOver = false
      const slow = ask(wish({ nodeId: hung.node.id }), merchant, key).then((answer) => {
        isOver = true
        return { answer, ms: performance.now() - start }
      })
      // More requests than the 32 connections that the service has to one node at most.
      const crowd = times(40, () => ask(wish({ nodeId: hung.node.id })))
      await new Promise((resolve) => setTimeout(resolve, 300))
      const others = await Promise.all([
        ask(wish({ nodeId: stall.node.id }), rival),
        ask(wish({ nodeId: shop.node.id })),
        ask(wish({ nodeId: hung.node.id }), merchant, key),
      ])
      const wereQuicker = !isOver
      const { answer, ms } = await slow
      if (answer.status !== 502 || answer.json().error.code !== 'payment_service_unavailable') throw new Hopeless(answer.text)
      if (ms < 4_500) throw new Hopeless(`given up after ${ms} ms`)
      // One after the other, the forty requests would take 200 s.
      if (ms > 50_000) throw new Hopeless(`given up after ${ms} ms`)
      const statuses = new Set((await Promise.all(crowd)).map(({ status }) => status))
      if ([...statuses].join() !== '502') throw new Hopeless(`the crowd got ${[...statuses]}`)
      return wereQuicker ? others : undefined
    }, 'others to be answered before the node that hangs was given up')
    expect([theirs.status, ours.status]).toEqual([201, 201])
    expect([again.status, again.json().error.code]).toEqual([409, 'operation_in_progress'])
    expect(Number(again.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(await keptOf(hung)).toBe(0)
    await fault(server, hung, 'none')
    await giveBack()
    await merchant.until(hung.node.id, 'ready')
    expect((await ask(wish({ nodeId: hung.node.id }), merchant, key)).status).toBe(201)
    await merchant.delete(hung.node.id)
  })
})

describe('the body', () => {
  const without = (name: string): object => ({ ...wish(), [name]: undefined })
  const bad: [title: string, body: () => unknown][] = [
    ...['nodeId', 'amountSat', 'description'].map((name): [string, () => unknown] => [`no ${name}`, () => without(name)]),
    ...['nodeId', 'amountSat', 'description', 'protocol'].flatMap((name) =>
      [null, true, [], {}, name === 'amountSat' ? '10' : 10].map((value): [string, () => unknown] => [
        `${name} ${JSON.stringify(value)}`,
        () => wish({ [name]: value }),
      ]),
    ),
    ['an array around the node', () => wish({ nodeId: [shop.node.id] })],
    ...['', 'MPP', 'L402', 'lsat', 'mpp ', 'x402'].map((protocol): [string, () => unknown] => [
      `protocol ${JSON.stringify(protocol)}`,
      () => wish({ protocol }),
    ]),
    ...['id', 'accountId', 'status', 'amountMsat', 'expiresAt', 'NodeId'].map((name): [string, () => unknown] => [
      `an unknown field ${name}`,
      () => wish({ [name]: 'x' }),
    ]),
    ...[null, [], 'text', 1, true].map((body): [string, () => unknown] => [`not an object: ${JSON.stringify(body)}`, () => body]),
  ]

  test.each(bad)('C34: %s is 400', async (_title, body) => {
    expect(await refusal(body())).toEqual(BAD)
  })

  test('C34: a missing and an incomplete body are 400', async () => {
    const path = '/gateway/payments'
    expect(await merchant.refusal('POST', path)).toEqual(BAD)
    const headers = { 'content-type': 'application/json' }
    expect(await merchant.refusal('POST', path, { headers, body: '{"nodeId"' })).toEqual(BAD)
  })

  test('MPP 19: an invalid amount is 400, and the node is not asked for anything', async () => {
    const [made, kept] = [await invoicesMade(shop), await paymentsKept()]
    const amounts = ['0', '-1', '-0', '1.5', '0.999', '"10"', '1e400', String(MAX_SAT + 1), '9007199254740993', '1e21', '[10]']
    for (const amount of amounts) {
      for (const protocol of PROTOCOLS) {
        const body = JSON.stringify(wish({ protocol })).replace('"amountSat":10', `"amountSat":${amount}`)
        const headers = { 'content-type': 'application/json' }
        const answer = await merchant.send('POST', '/gateway/payments', { body, headers })
        expect([amount, answer.status, answer.json().error?.code]).toEqual([amount, ...BAD])
      }
    }
    expect([await invoicesMade(shop), await paymentsKept()]).toEqual([made, kept])
  })

  test.each([1, 2_100_000_000_000_000 / 1000, MAX_SAT - 1, MAX_SAT])(
    'MPP 7, MPP 9, L402 7: %i sat is a valid amount',
    async (amountSat) => {
      for (const protocol of PROTOCOLS) {
        const { id, challenge } = await charge(merchant, shop, { amountSat, protocol })
        expect(decoded(invoiceIn(challenge)).amountMsat).toBe(`${amountSat}000`)
        expect((await merchant.want<Shown>(200, 'GET', `/gateway/payments/${id}`)).amountSat).toBe(amountSat)
        if (protocol === 'mpp') expect(requestIn(challenge).amount).toBe(String(amountSat))
      }
    },
  )
})

describe('C35: descriptions', () => {
  const good: [title: string, description: string][] = [
    ['one character', 'x'],
    ['500 letters', 'x'.repeat(500)],
    ['500 emoji, each two UTF-16 units and four bytes', '😀'.repeat(500)],
    ['spaces around a word, which stay', '  x  '],
    ['the character after the last C0 control', ' !'],
    ['the neighbours of DEL and of the last C1 control', '~\u00a0x'],
    ['combining marks and joiners', 'e\u0301 👨‍👩‍👧'],
    ['right-to-left, with a mark of direction', '\u200fשלום'],
    ['what JSON and forms escape', '"\\/&=+%00<script>'],
    ['128 UTF-16 units', '😀'.repeat(64)],
    ['128 units of three bytes each', '漢'.repeat(128)],
    ['129 UTF-16 units', `${'😀'.repeat(64)}x`],
  ]
  test.each(good)('C35, MPP 12, L402 7: %s', async (_title, description) => {
    for (const protocol of PROTOCOLS) {
      const { id, challenge } = await charge(merchant, shop, { description, protocol })
      const invoice = decoded(invoiceIn(challenge))
      const inInvoice = description.length <= 128 ? [description, undefined] : [undefined, sha256(description)]
      expect([invoice.description, invoice.descriptionHash]).toEqual(inInvoice)
      expect((await merchant.want<Shown>(200, 'GET', `/gateway/payments/${id}`)).description).toBe(description)
      if (protocol === 'mpp') expect(requestIn(challenge).description).toBe(description)
    }
  })

  const blanks =
    '\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'
  const bad: [title: string, description: string][] = [
    ['501 letters', 'x'.repeat(501)],
    ['501 emoji', '😀'.repeat(501)],
    ['no character', ''],
    ['half a surrogate pair, the first', 'x\ud83d'],
    ['half a surrogate pair, the second', '\ude00x'],
    ['a surrogate pair the wrong way round', '\ude00\ud83d'],
    ['a bidirectional override (security 29)', 'x\u202ey'],
    ['a zero-width space (security 29)', 'x\u200by'],
    ['nothing to see (security 29)', '\u200d\u3164'],
  ]
  test.each(bad)('C35: %s is 400', async (_title, description) => {
    expect(await refusal(wish({ description }))).toEqual(BAD)
  })

  test('C35: a description of nothing but white space is 400, of one kind or mixed', async () => {
    for (const description of [...blanks].flatMap((blank) => [blank, blank.repeat(3), ` ${blank} `]))
      expect([shown(description), ...(await refusal(wish({ description })))]).toEqual([shown(description), ...BAD])
  })

  test('C35: every C0, DEL and C1 control is 400, at any position', async () => {
    const controls = [...times(32, (code) => code), ...times(33, (index) => 127 + index)]
    for (const control of controls.map((code) => String.fromCharCode(code))) {
      const descriptions = [control, `${control}x`, `x${control}x`, `x${control}`]
      const answers = await Promise.all(descriptions.map((description) => refusal(wish({ description }))))
      expect([shown(control), ...answers]).toEqual([shown(control), ...descriptions.map(() => BAD)])
    }
  })
})

const shown = (text: string): string => [...text].map((c) => `\\u${c.charCodeAt(0).toString(16)}`).join('')

describe('authorization', () => {
  const routes: [method: string, path: string][] = [
    ['POST', '/gateway/payments'],
    ['GET', '/gateway/payments'],
    ['GET', '/gateway/payments/x'],
    ['POST', '/gateway/payments/x/validate'],
    ['POST', '/gateway/payments/x/redeem'],
  ]
  test.each(routes)('%s %s requires a key with gateway:write before anything else is checked', async (method, path) => {
    const plain = await newOwner(server, { accountId: merchant.accountId })
    const nobody = { headers: { authorization: 'Bearer byk_0000000000000000000000000000000000cR7l' } }
    for (const answer of [
      await plain.send(method, path, { json: 1 }),
      await merchant.send(method, path, { json: 1, ...nobody }),
    ]) {
      expect([answer.status, answer.json()]).toEqual([401, { error: { code: 'unauthorized', message: 'Unauthorized' } }])
    }
  })

  test('a key with only gateway:write creates and reads payments, but changes no node', async () => {
    const till = new Owner(server, await server.newKey(['gateway:write'], merchant.accountId))
    const { id } = await charge(till, shop)
    expect((await till.send('GET', `/gateway/payments/${id}`)).status).toBe(200)
    expect((await till.send('POST', '/nodes', { json: {} })).status).toBe(401)
  })
})

describe('C36: limits', () => {
  test('C36: neither /gateway nor /api-key counts towards the node limit', async () => {
    const strict = await startServer({ env: { ...server.sharedStoreEnv, ROLE: 'api', RATE_LIMIT_MAX: '3' } })
    const send = (method: string, path: string): Promise<Answer> => strict.send(method, `/v1${path}`, { token: merchant.key.key })
    const calls = times(60, (index) =>
      index % 3 === 0
        ? send('GET', '/gateway/payments?limit=1')
        : index % 3 === 1
          ? send('GET', '/api-key')
          : send('POST', `/gateway/payments/${newId('pay')}/validate`),
    )
    expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([200, 400]))
    const nodeCalls: number[] = []
    for (let index = 0; index < 4; index++) nodeCalls.push((await send('GET', '/nodes')).status)
    expect(nodeCalls).toEqual([200, 200, 200, 429])
    expect((await send('GET', '/gateway/payments')).status).toBe(200)
    await strict.stop()
  })

  test('C36: GATEWAY_RATE_LIMIT_MAX limits the creations of each key, and nothing else, and four headers report it', async () => {
    const env = { ...server.sharedStoreEnv, ROLE: 'api', GATEWAY_RATE_LIMIT_MAX: '3', RATE_LIMIT_WINDOW_SECONDS: '1' }
    const strict = await startServer({ env })
    const [one, two] = await Promise.all([newMerchant(server, merchant.accountId), newMerchant(server, merchant.accountId)])
    const send = (method: string, path: string, { key }: Owner): Promise<Answer> =>
      strict.send(method, `/v1${path}`, { token: key.key })
    const list = '/gateway/payments'
    const others = async (): Promise<number[]> =>
      [
        await send('GET', list, one),
        await send('GET', `${list}/${newId('pay')}`, one),
        await send('POST', `${list}/x/validate`, one),
        await send('POST', `${list}/x/redeem`, one),
        await send('POST', `${list}/x/release`, one),
        await send('POST', `${list}/delivered`, one),
      ].map(({ status }) => status)
    for (const _ of [1, 2, 3]) {
      expect(await others()).toEqual([200, 404, 400, 400, 400, 400])
      expect((await send('POST', list, one)).status).toBe(400)
    }
    const limited = await send('POST', list, one)
    expect([limited.status, limited.json()]).toEqual([429, { error: { code: 'rate_limited', message: 'rate limit exceeded' } }])
    const seconds = Number(limited.headers['retry-after'])
    // The window is always a minute, whatever it is for node operations.
    expect(Number.isInteger(seconds) && seconds > 1 && seconds <= 60).toBe(true)
    expect(limited.headers).toMatchObject({
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(seconds),
    })
    expect(await others()).toEqual([200, 404, 400, 400, 400, 400])
    expect((await send('POST', list, two)).status).toBe(400)
    await strict.stop()
  })

  test('C36: a node has at most MAX_OPEN_CHALLENGES open challenges; paid and expired ones make room', async () => {
    const strict = await startServer({ env: { MAX_OPEN_CHALLENGES: '5', NODE_PRICE_SAT_PER_DAY: '0' } })
    const seller = await newMerchant(strict)
    const [busy, other] = [await seller.createReady(), await seller.createReady()]
    const ask = async (at: Created): Promise<Answer> => {
      const json = { nodeId: at.node.id, amountSat: 1, description: 'x' }
      return seller.send('POST', '/gateway/payments', { json })
    }
    const answers = [await ask(busy), ...(await Promise.all(Array.from({ length: 7 }, () => ask(busy))))]
    const made = (): Answer[] => answers.filter(({ status }) => status === 201)
    expect(made().length).toBeLessThanOrEqual(5)
    // For up to a second, a new challenge may count twice.
    await eventually(async () => {
      if (made().length < 5) answers.push(await ask(busy))
      return made().length === 5
    }, 'all five places to be taken')
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 429]))
    const refused = await ask(busy)
    expect([refused.status, refused.json()]).toEqual([
      429,
      { error: { code: 'rate_limited', message: 'rate limit exceeded', limit: 'open_challenges' } },
    ])
    const seconds = Number(refused.headers['retry-after'])
    expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60).toBe(true)
    expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '0' })
    expect((await ask(other)).status).toBe(201)

    const [paid, expired] = made().map(({ json }) => json())
    await pay(strict, paid)
    await eventually(async () => (await ask(busy)).status === 201, 'room for one more')
    expect((await ask(busy)).status).toBe(429)
    await storeOf(strict)`UPDATE gateway_payments SET expires_at = now() WHERE id = ${expired.id}`
    await eventually(async () => (await ask(busy)).status === 201, 'room for one more')
    expect((await ask(busy)).status).toBe(429)
    await strict.stop()
  })

  test('C36: across processes, the limit can be exceeded by what the others create within a second, and then holds', async () => {
    const strict = await startServer({ env: { MAX_OPEN_CHALLENGES: '6', NODE_PRICE_SAT_PER_DAY: '0' } })
    const replica = await startServer({
      dataDir: strict.dataDir,
      env: { ...strict.sharedStoreEnv, ROLE: 'api', MAX_OPEN_CHALLENGES: '6' },
    })
    const seller = await newMerchant(strict)
    const { node } = await seller.createReady()
    const ask = async (at: Server): Promise<number> => {
      const json = { nodeId: node.id, amountSat: 1, description: 'x' }
      return (await at.send('POST', '/v1/gateway/payments', { token: seller.key.key, json })).status
    }
    const statuses = await Promise.all(Array.from({ length: 40 }, (_, at) => ask(at % 2 === 0 ? strict : replica)))
    const made = (): number => statuses.filter((status) => status === 201).length
    for (const at of [strict, replica])
      await eventually(async () => {
        statuses.push(await ask(at))
        return statuses.at(-1) === 429 && made() >= 6
      }, 'the other’s to be counted')
    expect(made()).toBeLessThanOrEqual(12)
    await replica.stop()
    await strict.stop()
  })

  test('C36: the count of open challenges uses its own index, and reads no more than the limit', async () => {
    const sql = storeOf(server)
    const [row] = await sql.begin(async (transaction) => {
      await transaction`SET LOCAL enable_seqscan = off`
      return transaction`
        EXPLAIN (FORMAT JSON) SELECT expires_at FROM gateway_payments
        WHERE node_id = ${shop.node.id} AND settled_at IS NULL AND expires_at > now() ORDER BY expires_at LIMIT 10000`
    })
    expect(JSON.stringify(row)).toContain('gateway_payments_open')
  })
})
