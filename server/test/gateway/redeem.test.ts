import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import { derivedKey, masterKeyOf } from '../../src/platform/secrets.ts'
import {
  attenuate,
  credentialOf,
  decoded,
  invoiceIn,
  l402Credential,
  macaroonIn,
  type Payment,
  parametersOf,
  pay,
  redeem,
  rowOf,
  storeOf,
  untilSettled,
  validate,
} from '../support/gateway.ts'
import { Owner } from '../support/nodes.ts'
import {
  accepted,
  BAD,
  type Bought,
  bought,
  deaf,
  EXPIRED,
  merchant,
  NOT_SETTLED,
  openShop,
  PROTOCOLS,
  paidRows,
  REDEEMED,
  refused,
  server,
  shop,
  statusOf,
  stranger,
  times,
  unpaid,
  validated,
  WRONG,
} from '../support/purchases.ts'
import { type Answer, eventually, type Server, startServer } from '../support/server.ts'

/** The most detailed log, and a PostgreSQL whose log can be read, because the tests search both for secrets. */
beforeAll(() => openShop({ store: 'embedded', env: { LOG_LEVEL: 'trace' } }))

describe('expiry', () => {
  const BRIEF = { challengeSeconds: 200, credentialSeconds: 600 }
  /** Another process of the same service, where everything expires sooner, and for which the database's clock can be moved. */
  let brief: Server
  let hurried: Owner
  beforeAll(async () => {
    await storeOf(server).unsafe(`
      CREATE SCHEMA later;
      CREATE TABLE later.by (seconds int NOT NULL);
      INSERT INTO later.by VALUES (0);
      CREATE FUNCTION later.now() RETURNS timestamptz LANGUAGE sql STABLE AS
        $$ SELECT pg_catalog.now() + seconds * interval '1 second' FROM later.by $$`)
    const settings = {
      CHALLENGE_LIFETIME_SECONDS: String(BRIEF.challengeSeconds),
      L402_LIFETIME_SECONDS: String(BRIEF.credentialSeconds),
    }
    const { DATABASE_URL, ...store } = server.sharedStoreEnv
    const inLater = `${DATABASE_URL}&${new URLSearchParams({ options: '-c search_path=public,later,pg_catalog' })}`
    const env = { ...store, DATABASE_URL: inLater, ROLE: 'api', TRUST_PROXY: '1', ...settings }
    brief = await startServer({ dataDir: server.dataDir, env })
    hurried = new Owner(brief, merchant.key)
  })
  const itIs = (secondsLater: number) => storeOf(server)`UPDATE later.by SET seconds = ${secondsLater}`
  afterAll(() => brief.stop())

  test('MPP 40, MPP 41, L402 51, L402 52, L402 53, C37: not paid in time is 410; paid in time is 200 however late it is validated, until the credential itself expires', async () => {
    const [mpp, l402] = [await bought('mpp', deaf, hurried), await bought('l402', deaf, hurried)]
    const [noMpp, noL402] = [await unpaid('mpp', deaf, hurried), await unpaid('l402', deaf, hurried)]
    const all = [mpp, l402, noMpp, noL402]
    const caveat = /boltyard_valid_until=(\d+)/.exec(macaroonIn(l402.payment.challenge).toString('latin1'))?.[1]
    const { createdAt, expiresAt } = await hurried.want<{ createdAt: number; expiresAt: number }>(
      200,
      'GET',
      `/gateway/payments/${l402.payment.id}`,
    )
    expect(expiresAt - createdAt).toBeLessThanOrEqual(BRIEF.challengeSeconds)
    // L402 12: the lifetime that the deployment sets.
    expect(Number(caveat)).toBe(createdAt + BRIEF.credentialSeconds)
    expect(decoded(invoiceIn(mpp.payment.challenge)).expiry).toBe(BRIEF.challengeSeconds)
    expect(await Promise.all(all.map(({ payment }) => statusOf(payment, hurried)))).toEqual(all.map(() => 'payment_required'))

    await itIs(BRIEF.challengeSeconds)
    // The service rejected the node’s events and has not asked the node yet, so it does not know that two invoices were paid.
    expect(await Promise.all(all.map(({ payment }) => statusOf(payment, hurried)))).toEqual(all.map(() => 'expired'))
    for (const { payment, credential } of [mpp, l402]) await accepted(validate(hurried, payment.id, credential))
    for (const { payment, credential } of [noMpp, noL402]) {
      expect(await refused(validate(hurried, payment.id, credential))).toEqual(EXPIRED)
      expect(await refused(validate(hurried, payment.id, `${credential}!`))).toEqual(WRONG)
    }
    expect(await Promise.all(all.map(({ payment }) => statusOf(payment, hurried)))).toEqual([
      'paid',
      'paid',
      'expired',
      'expired',
    ])
    expect(await rowOf(server, noMpp.payment.id)).toMatchObject({ settled_at: null, paid_at: null })

    await itIs(BRIEF.credentialSeconds)
    // Empties the cache of validated credentials. Its entries expire by the process's own clock, which the test does not move.
    await brief.restart()
    await accepted(validate(hurried, mpp.payment.id, mpp.credential))
    for (const attempt of [validate, redeem])
      expect(await refused(attempt(hurried, l402.payment.id, l402.credential))).toEqual(EXPIRED)
    const foreign = l402Credential(attenuate(macaroonIn(l402.payment.challenge), `payment_id=${newId('pay')}`), l402.preimage)
    expect(await refused(validate(hurried, l402.payment.id, foreign))).toEqual(WRONG)
  })
})

describe('C45: redeem', () => {
  test('C45, MPP 58: MPP is delivered once; the request that claimed it gets the same answer again', async () => {
    const { payment, credential } = await bought('mpp')
    const first = await accepted(redeem(merchant, payment.id, credential, { requestId: 'order 1' }))
    expect(JSON.parse(first)).toEqual({
      id: payment.id,
      protocol: 'mpp',
      status: 'paid',
      receipt: JSON.parse(await accepted(validate(merchant, payment.id, credential))).receipt,
      nodeId: shop.node.id,
      amountSat: 1000,
      description: 'Weather report',
      resource: null,
      redeemedAt: expect.any(Number),
    })
    await pause(1_100)
    expect(await accepted(redeem(merchant, payment.id, credential, { requestId: 'order 1' }))).toBe(first)
    for (const more of [{}, { requestId: 'order 2' }, { requestId: 'ORDER 1' }, { singleUse: false }, { requestId: 'order 1 ' }])
      expect(await refused(redeem(merchant, payment.id, credential, more))).toEqual(REDEEMED)
    expect(await accepted(redeem(merchant, payment.id, credential, { requestId: 'order 1' }))).toBe(first)
    expect(await paidRows(payment)).toBe(1)
  })

  test('C45, MPP 58: without a requestId, no one gets the delivery twice, not even the caller that had it', async () => {
    const { payment, credential } = await bought('mpp')
    await accepted(redeem(merchant, payment.id, credential))
    for (const more of [{}, { requestId: 'x' }])
      expect(await refused(redeem(merchant, payment.id, credential, more))).toEqual(REDEEMED)
  })

  test.each(PROTOCOLS)(
    'C45, MPP 58, L402 61: of twenty concurrent requests exactly one gets it; of twenty with the same requestId all do (%s)',
    async (protocol) => {
      const singleUse = { singleUse: true }
      for (const at of [shop, deaf]) {
        const one = await bought(protocol, at)
        const answers = await Promise.all(
          times(20, (index) => redeem(merchant, one.payment.id, one.credential, { ...singleUse, requestId: `r${index}` })),
        )
        expect(answers.map(({ status }) => status).sort()).toEqual([200, ...times(19, () => 409)])
        for (const { status, json } of answers) if (status !== 200) expect(json().error.code).toBe('already_redeemed')
        const two = await bought(protocol, at)
        const same = times(20, () =>
          accepted(redeem(merchant, two.payment.id, two.credential, { ...singleUse, requestId: 'one' })),
        )
        expect(new Set(await Promise.all(same)).size).toBe(1)
        expect([await paidRows(one.payment), await paidRows(two.payment)]).toEqual([1, 1])
      }
    },
  )

  test('C45, MPP 58: a payment validated before the store was restored to an earlier state is still delivered, once', async () => {
    const { payment, credential } = await bought('mpp')
    const { receipt } = JSON.parse(await accepted(validate(merchant, payment.id, credential)))
    await storeOf(server)`DELETE FROM paid_payments WHERE id = ${payment.id}`
    expect(JSON.parse(await accepted(redeem(merchant, payment.id, credential, { requestId: 'a' })))).toMatchObject({ receipt })
    expect(await refused(redeem(merchant, payment.id, credential, { requestId: 'b' }))).toEqual(REDEEMED)
    expect(await paidRows(payment)).toBe(1)
  })

  test('C45, L402 61: L402 is delivered every time until it expires, unless singleUse is set', async () => {
    const { payment, credential } = await bought('l402')
    const first = await accepted(redeem(merchant, payment.id, credential))
    expect(JSON.parse(first)).toEqual({
      id: payment.id,
      protocol: 'l402',
      status: 'paid',
      nodeId: shop.node.id,
      amountSat: 1000,
      description: 'Weather report',
      resource: null,
      redeemedAt: expect.any(Number),
    })
    for (const more of [{}, { requestId: 'a' }, { requestId: 'b', singleUse: false }])
      expect(await accepted(redeem(merchant, payment.id, credential, more))).toBe(first)
    expect(await refused(redeem(merchant, payment.id, credential, { singleUse: true }))).toEqual(REDEEMED)

    const once = await bought('l402')
    const use = (more: object): Promise<Answer> =>
      redeem(merchant, once.payment.id, once.credential, { singleUse: true, ...more })
    const answer = await accepted(use({ requestId: 'a' }))
    expect(await accepted(use({ requestId: 'a' }))).toBe(answer)
    for (const more of [{}, { requestId: 'b' }]) expect(await refused(use(more))).toEqual(REDEEMED)
  })

  test.each(PROTOCOLS)('C45, MPP 58, L402 61: an invalid credential claims nothing (%s)', async (protocol) => {
    const { payment, preimage, credential } = await unpaid(protocol)
    const before = await rowOf(server, payment.id)
    const all = { requestId: 'x', singleUse: true }
    for (const one of ['', 'x', credentialOf(payment, '0'.repeat(64))])
      expect(await refused(redeem(merchant, payment.id, one, all))).toEqual(WRONG)
    expect(await refused(redeem(merchant, payment.id, credential, all))).toEqual(NOT_SETTLED)
    expect(await rowOf(server, payment.id)).toEqual(before)
    await pay(server, payment)
    await untilSettled(merchant, payment)
    const settled = await rowOf(server, payment.id)
    expect(await refused(redeem(merchant, payment.id, credentialOf(payment, '0'.repeat(64)), all))).toEqual(WRONG)
    expect(await rowOf(server, payment.id)).toEqual(settled)
    await accepted(redeem(merchant, payment.id, credentialOf(payment, preimage), { ...all, requestId: 'y' }))
  })

  test('C45: a requestId is 1 to 128 printable ASCII characters, singleUse a boolean; otherwise 400, and nothing is claimed', async () => {
    const { payment, credential } = await bought('mpp')
    const bad = [
      ...['', 'x'.repeat(129), 'tab\t', 'line\n', 'ü', '\x7f', 1, null, ['x'], {}].map((requestId) => ({ requestId })),
      ...[1, 'true', null, []].map((singleUse) => ({ singleUse })),
      { more: 1 },
    ]
    for (const more of bad)
      expect([more, ...(await refused(redeem(merchant, payment.id, credential, more)))]).toEqual([more, ...BAD])
    expect(await rowOf(server, payment.id)).toMatchObject({ paid_at: null, redeemed_at: null })
    const requestId = ` ~${'x'.repeat(126)}`
    await accepted(redeem(merchant, payment.id, credential, { requestId }))
  })
})

/** Output of processes before the current one. */
let printedBefore = ''
async function restart(env: Record<string, string>): Promise<void> {
  printedBefore += server.stdout + server.stderr
  const { port } = server
  await server.restart('SIGTERM', env)
  // restart() reads the port from the printed URL, which may not be the port that the service listens on.
  server.port = port
}

async function dump(): Promise<string> {
  const sql = storeOf(server)
  const tables = await sql<{ name: string }[]>`
    SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`
  const rows = await Promise.all(tables.map(({ name }) => sql.unsafe(`SELECT t::text AS row FROM ${name} t`)))
  return rows
    .flat()
    .map(({ row }) => row)
    .join('\n')
}

/** Different encodings of the same bytes. */
const spellings = (bytes: Buffer): string[] => [
  bytes.toString('hex'),
  bytes.toString('base64').replace(/=+$/, ''),
  bytes.toString('base64url'),
]

describe('secrets', () => {
  test('MPP 22, MPP 26, L402 10: after a complete flow, no preimage, credential or key was printed, stored or returned, and no challenge printed', async () => {
    const answers: Answer[] = []
    const never: string[] = []
    const neverPrinted: string[] = []
    const protocolKey = derivedKey(masterKeyOf(Buffer.from(server.masterKey, 'base64')), 'protocol key')
    const derive = (salt: string, use: string): Buffer =>
      Buffer.from(hkdfSync('sha256', protocolKey, salt, `boltyard ${use}`, 32))

    for (const protocol of PROTOCOLS) {
      const { payment, preimage, credential } = await unpaid(protocol)
      const wrong = credentialOf(payment, randomBytes(32).toString('hex'))
      const { challenge } = payment
      const round = async (): Promise<void> => {
        for (const one of [wrong, credential, `${credential}!`, `Bearer ${credential}`]) {
          answers.push(await validate(merchant, payment.id, one), await redeem(merchant, payment.id, one, { requestId: 'x' }))
          answers.push(
            await merchant.send('POST', `/gateway/payments/${payment.id}/validate`, { json: { credential: one, more: one } }),
          )
          answers.push(await validate(merchant, newId('pay'), one), await validate(stranger, payment.id, one))
        }
        const path = `/gateway/payments/${payment.id}/validate`
        const headers = { 'content-type': 'application/json' }
        answers.push(await merchant.send('POST', path, { headers, body: `{"credential":"${credential}"` }))
      }
      await round()
      await pay(server, payment)
      await round()
      const shown = [
        await merchant.send('GET', `/gateway/payments/${payment.id}`),
        await merchant.send('GET', '/gateway/payments'),
      ]
      answers.push(...shown, await server.operator('GET', `/accounts/${merchant.accountId}/activity`))
      const { receipt = 'none for L402' } = (await validate(merchant, payment.id, credential)).json()
      for (const { text } of shown) expect(text).not.toContain(receipt)

      never.push(...spellings(Buffer.from(preimage, 'hex')), credential, credential.split(' ')[1] ?? '', `:${preimage}`)
      neverPrinted.push(challenge, receipt, wrong, invoiceIn(challenge))
      if (protocol === 'mpp') {
        const { id = '', realm, method, intent, request = '', expires } = parametersOf(challenge)
        const key = derive('', 'mpp challenge id')
        // Proves that this is the key in use; otherwise its absence would prove nothing.
        expect(
          createHmac('sha256', key).update([realm, method, intent, request, expires, '', ''].join('|')).digest('base64url'),
        ).toBe(id)
        never.push(...spellings(key))
        neverPrinted.push(id, request)
      } else {
        const [key, macaroon] = [derive(payment.id, 'l402 root key'), macaroonIn(challenge)]
        const hmac = (under: Buffer | string, data: Buffer | string): Buffer => createHmac('sha256', under).update(data).digest()
        const caveats = /services=boltyard:0|boltyard_valid_until=\d+|payment_id=pay_\w+/g
        const chain = [...macaroon.toString('latin1').matchAll(caveats)].map(([text]) => text)
        const signature = chain.reduce(hmac, hmac(hmac('macaroons-key-generator', key), macaroon.subarray(13, 79)))
        expect([chain.length, signature.toString('hex')]).toEqual([3, macaroon.subarray(-32).toString('hex')])
        never.push(...spellings(key))
        neverPrinted.push(...spellings(macaroon), ...spellings(macaroon.subarray(-32)))
      }
    }
    never.push(...spellings(protocolKey))

    const kept = await dump()
    for (const place of ['payment.settled', merchant.key.id, shop.node.id]) expect(kept).toContain(place)
    const printed = [
      printedBefore,
      server.stdout,
      server.stderr,
      readFileSync(join(server.dataDir, 'run', 'postgres.log'), 'utf8'),
    ]
    expect(printed.join('')).toContain('/validate')
    const said = answers.map(({ text, headers }) => text + JSON.stringify(headers))
    for (const secret of never) {
      expect(secret.length).toBeGreaterThan(40)
      expect([kept, ...printed, ...said].filter((text) => text.includes(secret)).map((text) => text.slice(0, 200))).toEqual([])
    }
    for (const secret of neverPrinted) expect(printed.some((text) => text.includes(secret))).toBe(false)
  })
})

describe('what outlives the process and its keys', () => {
  test('MPP 43, MPP 53, L402 30: after a restart and a change of the master key, old challenges validate and receipts are identical', async () => {
    const old = await Promise.all(PROTOCOLS.map((protocol) => validated(protocol)))
    const settled = await Promise.all(PROTOCOLS.map((protocol) => bought(protocol)))
    const open = await Promise.all(PROTOCOLS.map((protocol) => unpaid(protocol)))
    const redeemed = await bought('mpp')
    const claim = (): Promise<Answer> => redeem(merchant, redeemed.payment.id, redeemed.credential, { requestId: 'before' })
    const claimed = await accepted(claim())
    const sameAsEver = async (): Promise<void> => {
      for (const { payment, credential, text } of old) {
        expect(await accepted(validate(merchant, payment.id, credential))).toBe(text)
        expect((await merchant.want<Payment>(200, 'GET', `/gateway/payments/${payment.id}`)).challenge).toBe(payment.challenge)
      }
      expect(await accepted(claim())).toBe(claimed)
      expect(await refused(redeem(merchant, redeemed.payment.id, redeemed.credential))).toEqual(REDEEMED)
    }

    await restart({})
    await sameAsEver()
    const [first, second] = [server.masterKey, randomBytes(32).toString('base64')]
    await restart({ MASTER_KEY: second, MASTER_KEY_PREVIOUS: first })
    await sameAsEver()
    const [one, other] = settled as [Bought, Bought]
    await accepted(validate(merchant, one.payment.id, one.credential))
    const under = async (): Promise<number> => (await server.operator('GET', '/stats')).json().rowsUnderPreviousKey
    await eventually(async () => (await under()) === 0, 'everything to be resealed')

    await restart({ MASTER_KEY: second, PUBLIC_URL: 'http://pay.example:8080', OPERATOR_TOKEN: server.operatorToken })
    await sameAsEver()
    await accepted(validate(merchant, other.payment.id, other.credential))
    for (const { payment, credential } of open) {
      await pay(server, payment)
      await accepted(validate(merchant, payment.id, credential))
    }
    // New challenges use the new key and the new address.
    for (const protocol of PROTOCOLS) {
      const fresh = await bought(protocol)
      await accepted(validate(merchant, fresh.payment.id, fresh.credential))
      const keys = await Promise.all(
        [fresh, old[0]].map(async (one) => (await rowOf(server, one?.payment.id ?? '')).protocol_key_id),
      )
      expect(keys[0]).not.toBe(keys[1])
      if (protocol === 'mpp') expect(parametersOf(fresh.payment.challenge).realm).toBe('pay.example:8080')
    }
    await restart({ MASTER_KEY: second })
    await sameAsEver()
    server.env.MASTER_KEY = second
  })

  test('C37, L402 56: the database’s clock decides, even if it is an hour ahead of ours', async () => {
    const [open, settled] = [await unpaid('mpp'), await bought('l402')]
    await untilSettled(merchant, settled.payment)
    const soon = Math.floor(Date.now() / 1000) + 1_800
    const half = l402Credential(
      attenuate(macaroonIn(settled.payment.challenge), `boltyard_valid_until=${soon}`),
      settled.preimage,
    )
    await accepted(validate(merchant, settled.payment.id, half))
    const sql = storeOf(server)
    await sql.unsafe(`
      CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT pg_catalog.now() + interval '1 hour' $$;
      ALTER DATABASE ${server.store.database} SET search_path = public, pg_catalog;`)
    await restart({})
    expect(await statusOf(open.payment)).toBe('expired')
    expect(await refused(validate(merchant, open.payment.id, open.credential))).toEqual(EXPIRED)
    expect(await refused(validate(merchant, settled.payment.id, half))).toEqual(EXPIRED)
    await accepted(validate(merchant, settled.payment.id, settled.credential))
  })
})
