import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import {
  attenuate,
  base64url,
  credentialOf,
  decoded,
  invoiceIn,
  l402Credential,
  macaroonIn,
  mppCredential,
  parametersOf,
  pay,
  redeem,
  requestIn,
  rowOf,
  storeOf,
  untilSettled,
  validate,
} from '../support/gateway.ts'
import { fault } from '../support/nodes.ts'
import {
  accepted,
  BAD,
  bought,
  deaf,
  deafen,
  EXPIRED,
  ended,
  merchant,
  NOT_SETTLED,
  openShop,
  PROTOCOLS,
  paidRows,
  refused,
  server,
  shop,
  statusOf,
  stranger,
  times,
  UNAVAILABLE,
  UNKNOWN,
  unpaid,
  validated,
  WRONG,
} from '../support/purchases.ts'
import { type Answer, eventually } from '../support/server.ts'

beforeAll(() => openShop())

describe('a paid credential', () => {
  test('MPP 24, MPP 25, MPP 27: 200 with a receipt that contains the payment hash, and not in a shared cache', async () => {
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

  test('MPP 28, MPP 29: any case of the scheme, spaces around it, and padding or none are accepted; other schemes and alphabets are 400', async () => {
    const { payment, preimage, credential } = await bought('mpp')
    const token = credential.slice('Payment '.length)
    // A length that needs padding, so that there is something to pad.
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

  test('L402 20, L402 21, L402 22, L402 23, L402 24: LSAT as the scheme, any case, spaces, upper-case hex and every base64 alphabet are accepted', async () => {
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

  test('MPP 52: credentials of 4 KB and of up to 16 KB are read; longer ones are 400, and a body over 64 KiB is 413', async () => {
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

  test('L402 27, L402 28, L402 29: a credential that its holder has restricted is still valid; unknown caveats are skipped', async () => {
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
    'C38: of many concurrent first validations, one makes the transition and all get the same answer (%s, %i at once, %s)',
    async (protocol, count, _line) => {
      for (const at of [shop, deaf]) {
        const { payment, credential } = await bought(protocol, at)
        const texts = await Promise.all(times(count, () => accepted(validate(merchant, payment.id, credential))))
        expect(new Set(texts).size).toBe(1)
        expect(await paidRows(payment)).toBe(1)
      }
    },
  )

  test('MPP 43, MPP 44: every validation returns the same receipt, byte for byte; a wrong credential never gets one', async () => {
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

describe('C38: the order of checks', () => {
  describe.each(PROTOCOLS)('%s', (protocol) => {
    test('C38, MPP 28, L402 33: first the body, then the type of the credential, whether or not the payment exists', async () => {
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

    test('C38, MPP 50, L402 50: then the payment: unknown and another account’s are the same 404, whatever the id contains', async () => {
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

    test('C38, MPP 42, L402 51: then the credential, even of an expired payment; then its expiry; then the settlement', async () => {
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
      // MPP 40, L402 59: none of these attempts has changed the row, and `expired` is not stored.
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

    test('MPP 51, L402 49: a credential of the other protocol is invalid', async () => {
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
    // An extra member, added spaces, a lower amount, the same time in another format, and parameters that the challenge does not have.
    const request = base64url({ ...requestIn(payment.challenge), more: 1 })
    const spaced = Buffer.from(JSON.stringify(requestIn(payment.challenge), null, 1)).toString('base64url')
    const cheaper = base64url({ ...requestIn(payment.challenge), amount: '1' })
    const expires = challenge.expires?.replace('Z', '.000Z')
    for (const change of [{ request }, { request: spaced }, { request: cheaper }, { expires }, { opaque: 'x' }, { digest: 'x' }])
      expect(await refused(validate(merchant, payment.id, mppCredential({ ...challenge, ...change }, preimage)))).toEqual(WRONG)
    await accepted(validate(merchant, payment.id, credential))
  })

  test('L402 46, L402 54, L402 55: a holder’s caveat for another payment is 400; one that has expired is 410, while the original stays valid', async () => {
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
    'MPP 47, L402 47, C38: a caller who reads the preimage at the node without paying gets 400 not_settled after a bounded wait, and 200 once it is paid (%s)',
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
        expect(tookMs).toBeLessThan(50_000)
      }
      expect(await rowOf(server, payment.id)).toEqual(before)
      expect(await paidRows(payment)).toBe(0)
      expect(await pay(server, payment)).toBe(preimage)
      await accepted(validate(merchant, payment.id, credential))
    },
  )

  test('MPP 48, L402 31, C40: a settlement during the wait is 200, with and without the node’s event', async () => {
    const rounds = [shop, deaf].flatMap((at) => PROTOCOLS.map((protocol) => ({ at, protocol })))
    for (const { at, protocol } of rounds) {
      // The wait is two seconds. On a busy machine, the customer may pay too late; then another customer tries.
      const { tookMs, before } = await eventually(async () => {
        const { payment, credential } = await unpaid(protocol, at)
        const start = performance.now()
        const answering = validate(merchant, payment.id, credential).then(({ status }) => ({
          status,
          tookMs: performance.now() - start,
        }))
        await pause(500)
        const before = await rowOf(server, payment.id)
        await pay(server, payment)
        const { status, tookMs } = await answering
        return status === 200 ? { tookMs, before } : undefined
      }, 'a customer who pays during the wait')
      expect(before).toMatchObject({ settled_at: null, paid_at: null })
      expect(tookMs).toBeGreaterThan(500)
    }
  })

  test('C40: without the node’s event, nothing is lost: the first validation asks the node, and so does the sweep', async () => {
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

  test('MPP 49, L402 32, L402 48, C38: a node that does not answer: 502 for payments not known to be settled, 200 for settled ones', async () => {
    for (const protocol of PROTOCOLS) {
      const open = await unpaid(protocol, deaf)
      const late = await unpaid(protocol, deaf)
      const settled = await Promise.all(times(20, () => bought(protocol, deaf)))
      const paid = await bought(protocol, deaf)
      const text = await accepted(validate(merchant, paid.payment.id, paid.credential))
      const ids = settled.map(({ payment }) => payment.id)
      await storeOf(server)`UPDATE gateway_payments SET ask_at = now() WHERE id = ANY (${ids})`
      for (const { payment } of settled) await untilSettled(merchant, payment)
      await ended(late.payment)
      const before = [await rowOf(server, open.payment.id), await rowOf(server, late.payment.id)]
      await fault(server, deaf, 'hang')
      const start = performance.now()
      expect(await accepted(validate(merchant, paid.payment.id, paid.credential))).toBe(text)
      for (const { payment, credential } of settled) await accepted(validate(merchant, payment.id, credential))
      // If these validations waited for the node, each would take two seconds.
      expect(performance.now() - start).toBeLessThan(30_000)
      expect(await refused(validate(merchant, open.payment.id, open.credential))).toEqual(UNAVAILABLE)
      // The service does not know whether this invoice was paid, and a 410 would make the customer pay again.
      expect(await refused(validate(merchant, late.payment.id, late.credential))).toEqual(UNAVAILABLE)
      expect(await refused(validate(merchant, open.payment.id, 'x'))).toEqual(WRONG)
      expect([await rowOf(server, open.payment.id), await rowOf(server, late.payment.id)]).toEqual(before)
      await fault(server, deaf, 'none')
      expect(await refused(validate(merchant, late.payment.id, late.credential))).toEqual(EXPIRED)
      await pay(server, open.payment)
      await accepted(validate(merchant, open.payment.id, open.credential))
    }
  })

  test('MPP 49, L402 48, C40: a node is asked before it stops; then unsettled payments are 502 until it is back; settled ones stay valid even if it is deleted', async () => {
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
