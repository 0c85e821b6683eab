import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import { derivedKey, masterKeyOf } from '../../src/platform/secrets.ts'
import {
  attenuate,
  base64url,
  charge,
  credentialOf,
  decoded,
  invoiceIn,
  l402Credential,
  macaroonIn,
  mppCredential,
  newMerchant,
  type Payment,
  type Protocol,
  parametersOf,
  pay,
  preimageFrom,
  redeem,
  requestIn,
  rowOf,
  storeOf,
  untilSettled,
  validate,
} from '../support/gateway.ts'
import { type Created, fault, type Owner } from '../support/nodes.ts'
import { type Answer, eventually, type Server, type StoreKind, startServer } from '../support/server.ts'

const PROTOCOLS: Protocol[] = ['mpp', 'l402']
const BRIEF = { challengeSeconds: 3, credentialSeconds: 8 }

/** Logs all that it ever would. */
let server: Server
let merchant: Owner
let shop: Created
/** A node whose events are not believed: what it was paid is learnt by asking. */
let deaf: Created
let stranger: Owner

/** Everything is over soon here. */
let brief: Server
let hurried: Owner
let kiosk: Created

beforeAll(async () => {
  const start = async (env: Record<string, string>, store: StoreKind): Promise<[Server, Owner]> => {
    const started = await startServer({ store, env: { TRUST_PROXY: '1', ...env } })
    return [started, await newMerchant(started)]
  }
  const lifetimes = {
    CHALLENGE_LIFETIME_SECONDS: String(BRIEF.challengeSeconds),
    L402_LIFETIME_SECONDS: String(BRIEF.credentialSeconds),
  }
  ;[[server, merchant], [brief, hurried]] = await Promise.all([
    start({ LOG_LEVEL: 'trace' }, 'embedded'),
    start(lifetimes, 'shared'),
  ])
  const nodes = [merchant.createReady({ name: 'shop' }), merchant.createReady({ name: 'deaf' }), hurried.createReady()] as const
  ;[shop, deaf, kiosk] = await Promise.all(nodes)
  await deafen(server, deaf)
  await deafen(brief, kiosk)
  stranger = await newMerchant(server)
})

async function deafen(on: Server, { node }: Created): Promise<void> {
  await storeOf(on)`UPDATE node_secrets SET webhook_secret = NULL WHERE node_id = ${node.id}`
}

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))

type Bought = { payment: Payment; preimage: string; credential: string }

/** A payment, and the credential of somebody who read the preimage without paying. */
async function unpaid(protocol: Protocol, at = shop, by = merchant): Promise<Bought> {
  const payment = await charge(by, at, { protocol })
  const preimage = await preimageFrom(at, payment)
  return { payment, preimage, credential: credentialOf(payment, preimage) }
}

/** A payment that the customer has paid and nobody validated. */
async function bought(protocol: Protocol, at = shop, by = merchant): Promise<Bought> {
  const payment = await charge(by, at, { protocol })
  const preimage = await pay(by.server, payment)
  return { payment, preimage, credential: credentialOf(payment, preimage) }
}

async function validated(protocol: Protocol): Promise<Bought & { text: string }> {
  const one = await bought(protocol)
  return { ...one, text: await accepted(validate(merchant, one.payment.id, one.credential)) }
}

async function accepted(answer: Promise<Answer>): Promise<string> {
  const { status, text, headers } = await answer
  expect([status, text]).toEqual([200, expect.any(String)])
  expect(headers['cache-control']).toMatch(/^(private|no-store)$/)
  return text
}

/** Status, code and reason; every refusal has the one shape that MPP 55 names. */
async function refused(answer: Promise<Answer>): Promise<[status: number, code: string, reason?: string]> {
  const { status, text, json } = await answer
  if (status < 400) throw new Error(`${status} ${text}`)
  const { error, ...more } = json()
  const { code, message, reason, problem, ...extras } = error
  expect([more, extras, typeof message]).toEqual([{}, {}, 'string'])
  if (problem !== undefined) expect(problem).toMatch(/^https:\/\/paymentauth\.org\/problems\/[a-z/-]+$/)
  return reason === undefined ? [status, code] : [status, code, reason]
}

const WRONG = [400, 'invalid_payment_credential']
const NOT_SETTLED = [400, 'invalid_payment_credential', 'not_settled']
const BAD = [400, 'bad_request']
const UNKNOWN = [404, 'gateway_payment_not_found']
const EXPIRED = [410, 'payment_expired']
const UNAVAILABLE = [502, 'payment_service_unavailable']
const REDEEMED = [409, 'already_redeemed']

const ended = ({ id }: Payment, at = server) => storeOf(at)`UPDATE gateway_payments SET expires_at = now() WHERE id = ${id}`
const paidRows = async ({ id }: Payment): Promise<number> => {
  const activity = (await server.operator('GET', `/accounts/${merchant.accountId}/activity`)).json().activity
  return activity.filter((row: { action: string; target: string }) => row.action === 'payment.paid' && row.target === id).length
}
const statusOf = async ({ id }: Payment, by = merchant): Promise<string> =>
  (await by.want<{ status: string }>(200, 'GET', `/gateway/payments/${id}`)).status

describe('a paid credential', () => {
  test('MPP 24, MPP 25, MPP 27: 200 with a receipt that names the payment by its hash, and no cache may share it', async () => {
    const { payment, credential } = await bought('mpp')
    const { settledAt } = await untilSettled(merchant, payment)
    const answer = JSON.parse(await accepted(validate(merchant, payment.id, credential)))
    expect(answer).toEqual({ id: payment.id, protocol: 'mpp', status: 'paid', receipt: expect.stringMatching(/^[\w-]+$/) })
    const receipt = Buffer.from(answer.receipt, 'base64url').toString('utf8')
    const { timestamp } = JSON.parse(receipt)
    expect(receipt).toBe(
      JSON.stringify({
        challengeId: parametersOf(payment.challenge).id,
        method: 'lightning',
        reference: decoded(invoiceIn(payment.challenge)).paymentHash,
        status: 'success',
        timestamp,
      }),
    )
    expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
    expect(Math.floor(Date.parse(timestamp) / 1000)).toBe(settledAt)
  })

  test('L402 19, L402 25: 200 without a receipt, every time, and paid once', async () => {
    const { payment, credential } = await bought('l402')
    const texts = [
      await accepted(validate(merchant, payment.id, credential)),
      await accepted(validate(merchant, payment.id, credential)),
    ]
    expect(texts.map((text) => JSON.parse(text))).toEqual(times(2, () => ({ id: payment.id, protocol: 'l402', status: 'paid' })))
    expect(await paidRows(payment)).toBe(1)
  })

  test('MPP 28, MPP 29: any case of the scheme, spaces around, padding or none; other schemes and alphabets are 400', async () => {
    const { payment, preimage, credential } = await bought('mpp')
    const token = credential.slice('Payment '.length)
    // A length that wants padding, so that there is something to pad.
    const long = ['', 'x', 'xx'].map((source) =>
      base64url({ source, challenge: parametersOf(payment.challenge), payload: { preimage } }),
    )
    const odd = long.find((one) => one.length % 4 === 2) ?? ''
    const good = [
      `payment ${token}`,
      `PAYMENT ${token}`,
      `Payment    ${token}`,
      ` \t${credential}\t `,
      `Payment ${odd}`,
      `Payment ${odd}==`,
    ]
    for (const one of good) expect([one, (await validate(merchant, payment.id, one)).status]).toEqual([one, 200])
    const json = (text: string): string => `Payment ${Buffer.from(text).toString('base64url')}`
    const bad = [
      '',
      ' ',
      'Payment',
      'Payment ',
      token,
      `Bearer ${token}`,
      `L402 ${token}`,
      `Payment\t${token}`,
      `Payment:${token}`,
      `Payment ${token} ${token}`,
      `Payment ${token}, ${token}`,
      `Payment ${token.slice(0, 20)} ${token.slice(20)}`,
      `Payment ${token.slice(0, 20)}!${token.slice(20)}`,
      `Payment ${token}+`,
      `Payment ${token}/`,
      `Payment ${token}===`,
      `Authorization: ${credential}`,
      `${credential}\n`,
      `${credential}\r\nX: y`,
      payment.challenge,
      ...['null', '[]', '1', '"x"', 'true', '{', '{}', '{"challenge":null,"payload":null}', '\ufeff{}'].map(json),
      `Payment ${Buffer.of(0xff, 0xfe, 0x7b, 0x7d).toString('base64url')}`,
    ]
    for (const one of bad) expect([one, ...(await refused(validate(merchant, payment.id, one)))]).toEqual([one, ...WRONG])
  })

  test('L402 20, L402 21, L402 22, L402 23, L402 24: LSAT too, any case, spaces, upper-case hex, every base64', async () => {
    const { payment, preimage, credential } = await bought('l402')
    const base64 = parametersOf(payment.challenge).macaroon ?? ''
    const good = [
      `LSAT ${base64}:${preimage}`,
      `l402 ${base64}:${preimage}`,
      `lSaT ${base64}:${preimage}`,
      `L402    ${base64}:${preimage}`,
      ` \t${credential}\t `,
      `L402 ${base64}:${preimage.toUpperCase()}`,
      `L402 ${base64.replace(/=+$/, '')}:${preimage}`,
      `L402 ${macaroonIn(payment.challenge).toString('base64url')}:${preimage}`,
    ]
    for (const one of good) expect([one, (await validate(merchant, payment.id, one)).status]).toEqual([one, 200])
    expect(await paidRows(payment)).toBe(1)
  })

  test('MPP 52: 4 KB of credential are read, up to 16 KB; more is 400 and a body over 64 KiB is 413', async () => {
    const { payment, preimage } = await bought('mpp')
    const sized = (length: number): string => {
      const empty = mppCredential(parametersOf(payment.challenge), preimage, { source: '' })
      const one = mppCredential(parametersOf(payment.challenge), preimage, {
        source: 'x'.repeat(((length - empty.length) * 3) / 4),
      })
      return one
    }
    for (const length of [4096, 8192, 16_380]) {
      const credential = sized(length)
      expect(Math.abs(credential.length - length)).toBeLessThan(4)
      expect([length, (await validate(merchant, payment.id, credential)).status]).toEqual([length, 200])
    }
    for (const length of [16_392, 32_000]) expect(await refused(validate(merchant, payment.id, sized(length)))).toEqual(WRONG)
    expect(await refused(validate(merchant, payment.id, 'x'.repeat(64 * 1024)))).toEqual([413, 'payload_too_large'])
  })

  test('L402 27, L402 28, L402 29: narrowed by its holder it is still good; what we do not know is skipped', async () => {
    const { payment, preimage } = await bought('l402')
    const later = Math.floor(Date.now() / 1000) + 60
    const lists = [
      [`boltyard_valid_until=${later}`],
      ['services=boltyard:0'],
      ['services=boltyard:7', 'ip=10.0.0.1', 'no equals sign'],
    ]
    for (const caveats of lists) {
      const credential = l402Credential(attenuate(macaroonIn(payment.challenge), ...caveats), preimage)
      expect([caveats, (await validate(merchant, payment.id, credential)).status]).toEqual([caveats, 200])
    }
  })

  test.each([
    ['mpp', 50, 'MPP 45'],
    ['l402', 20, 'L402 26'],
  ] as const)(
    'C38: of many first validations at once one makes the transition, and all get the same answer (%s, %i at once, %s)',
    async (protocol, count, _line) => {
      for (const at of [shop, deaf]) {
        const { payment, credential } = await bought(protocol, at)
        const texts = await Promise.all(times(count, () => accepted(validate(merchant, payment.id, credential))))
        expect(new Set(texts).size).toBe(1)
        expect(await paidRows(payment)).toBe(1)
      }
    },
  )

  test('MPP 43, MPP 44: again and again the same receipt, byte for byte; with a wrong credential never', async () => {
    const { payment, preimage, credential, text } = await validated('mpp')
    await ended(payment)
    expect(await accepted(validate(merchant, payment.id, credential))).toBe(text)
    const { id } = parametersOf(payment.challenge)
    const bad = [
      mppCredential({ id }, preimage),
      mppCredential(parametersOf(payment.challenge), '0'.repeat(64)),
      String(id),
      'Payment x',
    ]
    for (const one of bad) {
      const answer = await validate(merchant, payment.id, one)
      expect([answer.status, answer.text.includes(JSON.parse(text).receipt)]).toEqual([400, false])
    }
    expect(await accepted(validate(merchant, payment.id, credential))).toBe(text)
  })
})

describe('C38: what is looked at first', () => {
  describe.each(PROTOCOLS)('%s', (protocol) => {
    test('C38, MPP 28, L402 33: the body, then the type of the credential, whether or not the payment is there', async () => {
      const { payment, credential } = await unpaid(protocol)
      for (const id of [payment.id, newId('pay'), 'x']) {
        for (const action of ['validate', 'redeem']) {
          const path = `/gateway/payments/${id}/${action}`
          const post = (json: unknown) => refused(merchant.send('POST', path, { json }))
          for (const body of [null, [], 'x', 1, { credential, more: 1 }, { more: 1 }, { credential: null, more: 1 }])
            expect([body, ...(await post(body))]).toEqual([body, ...BAD])
          expect(await refused(merchant.send('POST', path))).toEqual(BAD)
          for (const body of [{}, ...[null, 1, true, [], [credential], { credential }].map((one) => ({ credential: one }))])
            expect([body, ...(await post(body))]).toEqual([body, ...WRONG])
        }
      }
    })

    test('C38, MPP 50, L402 50: then the payment: unknown and another account’s are one 404, whatever the string holds', async () => {
      const { payment, credential } = await validated(protocol)
      const answers = [
        ...(await Promise.all(['', 'x', credential].map((one) => validate(merchant, newId('pay'), one)))),
        ...(await Promise.all(['', 'x', credential].map((one) => validate(stranger, payment.id, one)))),
        ...(await Promise.all(
          ['x', '%00', shop.node.id, payment.id.toUpperCase()].map((id) => validate(merchant, id, credential)),
        )),
        await redeem(stranger, payment.id, credential),
        await redeem(merchant, newId('pay'), credential),
      ]
      expect(await refused(Promise.resolve(answers[0] as Answer))).toEqual(UNKNOWN)
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    })

    test('C38, MPP 42, L402 51: then the credential, also of an expired payment; then its expiry; then the settlement', async () => {
      const { payment, credential } = await unpaid(protocol)
      const wrong = credentialOf(payment, '0'.repeat(64))
      const before = await rowOf(server, payment.id)
      for (const one of ['', 'x', wrong]) expect(await refused(validate(merchant, payment.id, one))).toEqual(WRONG)
      expect(await refused(validate(merchant, payment.id, credential))).toEqual(NOT_SETTLED)
      expect(await rowOf(server, payment.id)).toEqual(before)
      await ended(payment)
      const expired = await rowOf(server, payment.id)
      for (const one of ['', 'x', wrong]) expect(await refused(validate(merchant, payment.id, one))).toEqual(WRONG)
      expect(await refused(validate(merchant, payment.id, credential))).toEqual(EXPIRED)
      expect(await refused(redeem(merchant, payment.id, credential))).toEqual(EXPIRED)
      // MPP 40, L402 59: nothing of all that has left a trace, and `expired` is not stored.
      expect(await rowOf(server, payment.id)).toEqual(expired)
    })

    test('MPP 35, MPP 37, L402 37, L402 41, L402 59: a wrong preimage and a genuine credential of another payment change nothing', async () => {
      const [one, other] = [await bought(protocol), await bought(protocol)]
      await Promise.all([one, other].map(({ payment }) => untilSettled(merchant, payment)))
      const before = [await rowOf(server, one.payment.id), await rowOf(server, other.payment.id)]
      const wrong = ['0'.repeat(64), 'f'.repeat(64), other.preimage, randomBytes(32).toString('hex')]
      const credentials = [...wrong.map((preimage) => credentialOf(one.payment, preimage)), other.credential]
      credentials.push(credentialOf(other.payment, one.preimage))
      for (const credential of credentials) {
        const answer = await validate(merchant, one.payment.id, credential)
        expect([answer.status, answer.json().error.code]).toEqual(WRONG)
        for (const secret of [other.payment.id, other.payment.challenge, other.preimage])
          expect(answer.text).not.toContain(secret)
      }
      expect([await rowOf(server, one.payment.id), await rowOf(server, other.payment.id)]).toEqual(before)
      await accepted(validate(merchant, one.payment.id, one.credential))
      expect(await rowOf(server, other.payment.id)).toEqual(before[1])
      await accepted(validate(merchant, other.payment.id, other.credential))
    })

    test('MPP 51, L402 49: a credential of the other protocol is a wrong one', async () => {
      const { payment, preimage } = await bought(protocol)
      const foreign = await bought(protocol === 'mpp' ? 'l402' : 'mpp')
      expect(await refused(validate(merchant, payment.id, foreign.credential))).toEqual(WRONG)
      expect(await refused(validate(merchant, foreign.payment.id, credentialOf(payment, preimage)))).toEqual(WRONG)
      const disguised =
        protocol === 'mpp'
          ? l402Credential(macaroonIn(foreign.payment.challenge), preimage)
          : mppCredential(parametersOf(foreign.payment.challenge), preimage)
      expect(await refused(validate(merchant, payment.id, disguised))).toEqual(WRONG)
    })
  })

  test('MPP 36: any change to one of the six echoed strings is 400, and so is leaving one out', async () => {
    const { payment, preimage, credential } = await bought('mpp')
    const challenge = parametersOf(payment.challenge)
    for (const [name, value] of Object.entries(challenge)) {
      const changed = [
        `${value}x`,
        value.slice(0, -1),
        value.slice(1),
        ` ${value}`,
        `${value}"`,
        value === value.toUpperCase() ? value.toLowerCase() : value.toUpperCase(),
        '',
        undefined,
        null,
        1,
        [value],
      ]
      for (const one of changed.filter((change) => change !== value)) {
        const answer = await refused(validate(merchant, payment.id, mppCredential({ ...challenge, [name]: one }, preimage)))
        expect([name, one, ...answer]).toEqual([name, one, ...WRONG])
      }
    }
    // The same meaning in other bytes, and the same moment written otherwise.
    const request = base64url({ ...requestIn(payment.challenge), more: 1 })
    const spaced = Buffer.from(JSON.stringify(requestIn(payment.challenge), null, 1)).toString('base64url')
    const cheaper = base64url({ ...requestIn(payment.challenge), amount: '1' })
    const expires = challenge.expires?.replace('Z', '.000Z')
    for (const change of [{ request }, { request: spaced }, { request: cheaper }, { expires }, { opaque: 'x' }, { digest: 'x' }])
      expect(await refused(validate(merchant, payment.id, mppCredential({ ...challenge, ...change }, preimage)))).toEqual(WRONG)
    await accepted(validate(merchant, payment.id, credential))
  })

  test('L402 46, L402 54, L402 55: a holder’s caveat for another payment is 400; one whose time is over 410, while the original stays good', async () => {
    const { payment, preimage, credential } = await validated('l402')
    const now = Math.floor(Date.now() / 1000)
    const with_ = (...caveats: string[]): Promise<Answer> =>
      validate(merchant, payment.id, l402Credential(attenuate(macaroonIn(payment.challenge), ...caveats), preimage))
    expect(await refused(with_(`payment_id=${newId('pay')}`))).toEqual(WRONG)
    expect(await refused(with_(`boltyard_valid_until=${now - 1}`))).toEqual(EXPIRED)
    expect(await refused(with_(`boltyard_valid_until=${now - 1}`, `payment_id=${newId('pay')}`))).toEqual(WRONG)
    expect(await refused(with_(`boltyard_valid_until=${now - 1}`, 'services=other:0'))).toEqual(WRONG)
    expect(await refused(with_(`boltyard_valid_until=${now + 1_000_000}`))).toEqual(WRONG)
    expect((await with_(`payment_id=${payment.id}`)).status).toBe(200)
    await accepted(validate(merchant, payment.id, credential))
  })
})

describe('settlement', () => {
  test.each(PROTOCOLS)(
    'MPP 47, L402 47, C38: who reads the preimage at the node without paying gets 400 not_settled after a bounded wait, and 200 once it is paid (%s)',
    async (protocol) => {
      const { payment, credential, preimage } = await unpaid(protocol)
      const before = await rowOf(server, payment.id)
      const attempts = [validate, redeem].map(async (attempt) => {
        const start = performance.now()
        expect(await refused(attempt(merchant, payment.id, credential))).toEqual(NOT_SETTLED)
        return performance.now() - start
      })
      for (const tookMs of await Promise.all(attempts)) {
        expect(tookMs).toBeGreaterThan(1_200)
        expect(tookMs).toBeLessThan(4_000)
      }
      expect(await rowOf(server, payment.id)).toEqual(before)
      expect(await paidRows(payment)).toBe(0)
      expect(await pay(server, payment)).toBe(preimage)
      await accepted(validate(merchant, payment.id, credential))
    },
  )

  test('MPP 48, L402 31, C40: what is settled during the wait is 200, with the node’s event and without it', async () => {
    const rounds = [shop, deaf].flatMap((at) => PROTOCOLS.map((protocol) => ({ at, protocol })))
    for (const { at, protocol } of rounds) {
      const { payment, credential } = await unpaid(protocol, at)
      const start = performance.now()
      const answer = accepted(validate(merchant, payment.id, credential)).then(() => performance.now() - start)
      await pause(500)
      expect(await rowOf(server, payment.id)).toMatchObject({ settled_at: null, paid_at: null })
      await pay(server, payment)
      const tookMs = await answer
      expect(tookMs).toBeGreaterThan(500)
      expect(tookMs).toBeLessThan(3_000)
    }
  })

  test('C40: without the node’s event, nothing is lost: the first validation asks, and so does the service by itself', async () => {
    for (const protocol of PROTOCOLS) {
      const asked = await bought(protocol, deaf)
      expect(await rowOf(server, asked.payment.id)).toMatchObject({ settled_at: null })
      await accepted(validate(merchant, asked.payment.id, asked.credential))
      const swept = await bought(protocol, deaf)
      await storeOf(server)`UPDATE gateway_payments SET ask_at = now() WHERE id = ${swept.payment.id}`
      await untilSettled(merchant, swept.payment)
      expect(await statusOf(swept.payment)).toBe('payment_required')
    }
  })

  test('MPP 49, L402 32, L402 48, C38: a node that does not answer: 502 for what is not known to be settled, 200 for what is', async () => {
    for (const protocol of PROTOCOLS) {
      const open = await unpaid(protocol, deaf)
      const late = await unpaid(protocol, deaf)
      const settled = await bought(protocol, deaf)
      const paid = await bought(protocol, deaf)
      const text = await accepted(validate(merchant, paid.payment.id, paid.credential))
      await storeOf(server)`UPDATE gateway_payments SET ask_at = now() WHERE id = ${settled.payment.id}`
      await untilSettled(merchant, settled.payment)
      await ended(late.payment)
      const before = [await rowOf(server, open.payment.id), await rowOf(server, late.payment.id)]
      await fault(server, deaf, 'hang')
      const start = performance.now()
      expect(await accepted(validate(merchant, paid.payment.id, paid.credential))).toBe(text)
      await accepted(validate(merchant, settled.payment.id, settled.credential))
      expect(performance.now() - start).toBeLessThan(1_500)
      expect(await refused(validate(merchant, open.payment.id, open.credential))).toEqual(UNAVAILABLE)
      // It is not known that nobody paid: 410 would send the customer away to pay again.
      expect(await refused(validate(merchant, late.payment.id, late.credential))).toEqual(UNAVAILABLE)
      expect(await refused(validate(merchant, open.payment.id, 'x'))).toEqual(WRONG)
      expect([await rowOf(server, open.payment.id), await rowOf(server, late.payment.id)]).toEqual(before)
      await fault(server, deaf, 'none')
      expect(await refused(validate(merchant, late.payment.id, late.credential))).toEqual(EXPIRED)
      await pay(server, open.payment)
      await accepted(validate(merchant, open.payment.id, open.credential))
    }
  })

  test('MPP 49, L402 48, C40: a node is asked before it stops; then 502 for the rest until it is back; what is settled outlives a deleted node', async () => {
    const node = await merchant.createReady({ name: 'closing' })
    await deafen(server, node)
    const [open, settled] = [await unpaid('mpp', node), await bought('l402', node)]
    await merchant.act(node.node.id, 'stop')
    expect((await rowOf(server, settled.payment.id)).settled_at).toBeInstanceOf(Date)
    await accepted(validate(merchant, settled.payment.id, settled.credential))
    expect(await refused(validate(merchant, open.payment.id, open.credential))).toEqual(UNAVAILABLE)
    await merchant.act(node.node.id, 'start')
    expect(await refused(validate(merchant, open.payment.id, open.credential))).toEqual(NOT_SETTLED)
    await merchant.want(204, 'DELETE', `/nodes/${node.node.id}?force=true`)
    expect(await refused(validate(merchant, open.payment.id, open.credential))).toEqual(UNAVAILABLE)
    await accepted(validate(merchant, settled.payment.id, settled.credential))
  })
})

describe('expiry', () => {
  test('MPP 40, MPP 41, L402 51, L402 52, L402 53, C37: not paid in time is 410; paid in time is 200 however late, within the credential’s own life', async () => {
    const [mpp, l402] = [await bought('mpp', kiosk, hurried), await bought('l402', kiosk, hurried)]
    const [noMpp, noL402] = [await unpaid('mpp', kiosk, hurried), await unpaid('l402', kiosk, hurried)]
    const all = [mpp, l402, noMpp, noL402]
    const caveat = /boltyard_valid_until=(\d+)/.exec(macaroonIn(l402.payment.challenge).toString('latin1'))?.[1]
    const { createdAt, expiresAt } = await hurried.want<{ createdAt: number; expiresAt: number }>(
      200,
      'GET',
      `/gateway/payments/${l402.payment.id}`,
    )
    expect(expiresAt - createdAt).toBeLessThanOrEqual(BRIEF.challengeSeconds)
    // L402 12: the deployment's own lifetime.
    expect(Number(caveat)).toBe(createdAt + BRIEF.credentialSeconds)
    expect(decoded(invoiceIn(mpp.payment.challenge)).expiry).toBe(BRIEF.challengeSeconds)
    expect(await Promise.all(all.map(({ payment }) => statusOf(payment, hurried)))).toEqual(all.map(() => 'payment_required'))

    await eventually(async () => (await statusOf(noL402.payment, hurried)) === 'expired', 'all challenges to expire')
    // Its events are not believed and it was not asked yet, so nobody knows that two of them were paid.
    expect(await Promise.all(all.map(({ payment }) => statusOf(payment, hurried)))).toEqual(all.map(() => 'expired'))
    for (const { payment, credential } of [mpp, l402]) await accepted(validate(hurried, payment.id, credential))
    for (const { payment, credential } of [noMpp, noL402]) {
      expect(await refused(validate(hurried, payment.id, credential))).toEqual(EXPIRED)
      expect(await refused(validate(hurried, payment.id, `${credential}0`))).toEqual(WRONG)
    }
    expect(await Promise.all(all.map(({ payment }) => statusOf(payment, hurried)))).toEqual([
      'paid',
      'paid',
      'expired',
      'expired',
    ])
    expect(await rowOf(brief, noMpp.payment.id)).toMatchObject({ settled_at: null, paid_at: null })

    await pause(Number(caveat) * 1000 - Date.now() + 100)
    await accepted(validate(hurried, mpp.payment.id, mpp.credential))
    for (const attempt of [validate, redeem])
      expect(await refused(attempt(hurried, l402.payment.id, l402.credential))).toEqual(EXPIRED)
    const foreign = l402Credential(attenuate(macaroonIn(l402.payment.challenge), `payment_id=${newId('pay')}`), l402.preimage)
    expect(await refused(validate(hurried, l402.payment.id, foreign))).toEqual(WRONG)
  })
})

describe('C45: redeem', () => {
  test('C45, MPP 58: MPP is delivered once; the request that has it gets the same answer again', async () => {
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

  test('C45, MPP 58: without a requestId nobody gets it twice, also not the one who had it', async () => {
    const { payment, credential } = await bought('mpp')
    await accepted(redeem(merchant, payment.id, credential))
    for (const more of [{}, { requestId: 'x' }])
      expect(await refused(redeem(merchant, payment.id, credential, more))).toEqual(REDEEMED)
  })

  test.each(PROTOCOLS)(
    'C45, MPP 58, L402 61: of twenty at once exactly one gets it; of twenty that are one request all do (%s)',
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

  test('C45, MPP 58: what was validated before the store was restored to an earlier time is still delivered, once', async () => {
    const { payment, credential } = await bought('mpp')
    const { receipt } = JSON.parse(await accepted(validate(merchant, payment.id, credential)))
    await storeOf(server)`DELETE FROM paid_payments WHERE id = ${payment.id}`
    expect(JSON.parse(await accepted(redeem(merchant, payment.id, credential, { requestId: 'a' })))).toMatchObject({ receipt })
    expect(await refused(redeem(merchant, payment.id, credential, { requestId: 'b' }))).toEqual(REDEEMED)
    expect(await paidRows(payment)).toBe(1)
  })

  test('C45, L402 61: L402 is delivered every time within its life, unless singleUse asks for once', async () => {
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

  test.each(PROTOCOLS)('C45, MPP 58, L402 61: what does not validate claims nothing (%s)', async (protocol) => {
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

/** What was printed by processes before the present one. */
let printedBefore = ''
async function restart(env: Record<string, string>): Promise<void> {
  printedBefore += server.stdout + server.stderr
  const { port } = server
  await server.restart('SIGTERM', env)
  // What it prints is how clients reach it, which need not be where it listens.
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

/** The ways in which bytes are written. */
const spellings = (bytes: Buffer): string[] => [
  bytes.toString('hex'),
  bytes.toString('base64').replace(/=+$/, ''),
  bytes.toString('base64url'),
]

describe('secrets', () => {
  test('MPP 22, MPP 26, L402 10: after a whole round no preimage, credential or key is printed, kept or answered, and no challenge printed', async () => {
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
        // The key is the one: otherwise its absence would mean nothing.
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
  test('MPP 43, MPP 53, L402 30: after a restart and a change of the master key old challenges validate, and receipts are the same bytes', async () => {
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
    await eventually(async () => (await under()) === 0, 'everything to be sealed anew')

    await restart({ MASTER_KEY: second, PUBLIC_URL: 'http://pay.example:8080', OPERATOR_TOKEN: server.operatorToken })
    await sameAsEver()
    await accepted(validate(merchant, other.payment.id, other.credential))
    for (const { payment, credential } of open) {
      await pay(server, payment)
      await accepted(validate(merchant, payment.id, credential))
    }
    // What is new is issued under the new key, and names the new address.
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

  test('C37, L402 56: the clock is the database’s: an hour ahead of ours, it is an hour later', async () => {
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
