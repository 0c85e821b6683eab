import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CRASHING_SANDBOXD, SANDBOXD } from '../../testing/bundles.ts'
import { eventually, TestHub, TestNode } from './harness.ts'

const FUNDED_SAT = 10_000
const LARGEST_BALANCE_SAT = 9_007_199_254_740
const program = CRASHING_SANDBOXD

async function network() {
  const hub = await new TestHub(program).start()
  const [payer, payee] = await Promise.all([new TestNode({ hub, program }).start(), new TestNode({ hub, program }).start()])
  await hub.fund(payer, FUNDED_SAT)
  return { hub, payer, payee }
}

/** Restarts the process with the crash point, lets it die there during the work, and starts it again without the crash point. */
async function dieAt<T>(who: TestHub | TestNode, point: string, work: () => Promise<T>): Promise<T | Error> {
  await who.daemon.kill()
  await who.start({ CRASH_AT: point })
  const result = work().catch((error: Error) => error)
  expect((await who.daemon.exited).signal, `"${point}" was reached`).toBe('SIGKILL')
  await who.start()
  return result
}

async function outgoing(payer: TestNode, paymentHash: string): Promise<any> {
  return eventually(async () => {
    const row = (await payer.get(`/payments/outgoingbyhash/${paymentHash}`)).json()
    return row.completedAt && row
  }, 'the payment to end')
}

describe('kill -9 between any two durable steps: the payment is made exactly once', () => {
  test.each([
    ['payer', 'payer: pending is durable'],
    ['payer', 'payer: answer is known'],
    ['payer', 'payer: end is durable'],
    ['payee', 'recipient: paid is durable'],
    ['hub', 'hub: before relaying'],
    ['hub', 'hub: after relaying'],
  ] as const)('the %s dies at "%s"', async (who, point) => {
    const parties = await network()
    const { payer, payee } = parties
    const invoice = await payee.invoice({ amountSat: 1000 })
    const answer = await dieAt(parties[who], point, () => payer.pay(invoice.serialized))
    const row = await outgoing(payer, invoice.paymentHash)
    // If the payer survived, its caller got the response. If the payer died, its caller has to look up the result.
    if (who === 'payer') expect(answer).toBeInstanceOf(Error)
    else expect(answer).toMatchObject({ paymentPreimage: row.preimage })
    expect(row.isPaid).toBe(true)
    expect(await payee.incoming(invoice.paymentHash)).toMatchObject({ isPaid: true, receivedSat: 1000 })
    expect((await payer.state()).balanceMsat).toBe(FUNDED_SAT * 1000 - 1_008_000)
    expect((await payee.state()).balanceMsat).toBe(1_000_000)
    expect((await payer.pay(invoice.serialized)).reason).toBe('this invoice has already been paid')
  })

  test.each([
    ['hub', 'hub: paying is durable'],
    ['hub', 'hub: after relaying'],
    ['payee', 'recipient: paid is durable'],
  ] as const)('the wallet pays, and the %s dies at "%s"', async (who, point) => {
    const parties = await network()
    const { hub, payee } = parties
    const invoice = await payee.invoice({ amountSat: 500 })
    await dieAt(parties[who], point, () => hub.post('/pay', { invoice: invoice.serialized }))
    await eventually(async () => (await hub.get('/wallet')).json().pending === 0, 'the wallet to finish')
    expect((await hub.get('/wallet')).json()).toEqual({ grantedMsat: FUNDED_SAT * 1000, paidMsat: 500_000, pending: 0 })
    expect((await payee.state()).balanceMsat).toBe(500_000)
    const again = (await hub.post('/pay', { invoice: invoice.serialized })).json()
    expect(again).toEqual({ paymentHash: invoice.paymentHash, preimage: (await payee.incoming(invoice.paymentHash)).preimage })
    expect((await payee.state()).balanceMsat).toBe(500_000)
  })

  test.each([
    ['hub', 'hub: grant is durable'],
    ['hub', 'hub: grant is known'],
    ['payee', 'recipient: funded is durable'],
  ] as const)('the faucet funds once when the %s dies at "%s"', async (who, point) => {
    const parties = await network()
    const { hub, payee } = parties
    await dieAt(parties[who], point, () => hub.post(`/nodes/${payee.nodeId}/fund`, { amountSat: 700 }))
    await eventually(async () => (await hub.get('/wallet')).json().pending === 0, 'the grant to finish')
    expect((await payee.state()).balanceMsat).toBe(700_000)
    expect((await hub.get('/wallet')).json().grantedMsat).toBe((FUNDED_SAT + 700) * 1000)
  })

  test('funding that the node refuses ends when both die after the refusal, and its money never arrives', async () => {
    const { hub, payer, payee } = await network()
    await payee.fund(LARGEST_BALANCE_SAT)
    await payee.daemon.kill()
    // The first refusal does not kill the node: only that of a repeat is recorded.
    await payee.start({ CRASH_AT: 'recipient: refused is durable' })
    await dieAt(hub, 'hub: grant is known', () => hub.post(`/nodes/${payee.nodeId}/fund`, { amountSat: 700 }))
    expect((await payee.daemon.exited).signal).toBe('SIGKILL')
    await payee.start()
    await eventually(async () => (await hub.get('/wallet')).json().pending === 0, 'the grant to end')
    expect((await hub.get('/wallet')).json().grantedMsat).toBe(FUNDED_SAT * 1000)

    // Now there would be room for the money, but the refusal was final.
    await payee.pay((await payer.invoice({ amountSat: 5000 })).serialized)
    const { balanceMsat } = await payee.state()
    const fundId = [...readFileSync(join(hub.dataDir, 'hub.db'), 'utf8').matchAll(/"fundId":"([^"]+)"/g)].at(-1)?.[1]
    expect((await payee.control('fund', { fundId, amountSat: 700 })).status).toBe(409)
    await payee.restart()
    expect((await payee.control('fund', { fundId, amountSat: 700, again: true })).json()).toHaveProperty('refused')
    expect((await payee.state()).balanceMsat).toBe(balanceMsat)
  })
})

describe('a payer with an unknown outcome waits for the recipient', () => {
  test('a recipient that hangs leaves the payment pending, not failed; it settles when the recipient is back', async () => {
    const { payer, payee } = await network()
    const invoice = await payee.invoice({ amountSat: 1000 })
    // Suspended, not killed: the recipient's port accepts the delivery, but there is no response.
    payee.daemon.child.kill('SIGSTOP')
    const paying = payer.pay(invoice.serialized)
    const row = await eventually(async () => (await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json(), 'a row')
    expect(row).not.toHaveProperty('completedAt')
    payee.daemon.child.kill('SIGCONT')
    expect(await paying).toHaveProperty('paymentPreimage')
    expect((await payee.state()).balanceMsat).toBe(1_000_000)
  })

  test('once a retried delivery is refused, a late copy of it is refused too, even after a restart', async () => {
    const { payer, payee } = await network()
    const invoice = await payee.invoice({ amountSat: 1000 })
    const decoded = (await payee.post('/decodeinvoice', { invoice: invoice.serialized })).json()
    const delivery = {
      paymentId: '11111111-2222-4333-8444-555555555555',
      recipient: payee.nodeId,
      paymentHash: invoice.paymentHash,
      paymentSecret: decoded.paymentSecret,
      amountMsat: 999_000,
      again: true,
    }
    expect((await payee.control('receive', delivery)).json()).toMatchObject({ outcome: 'refused' })
    await payee.restart()
    const lateCopy = { ...delivery, amountMsat: 1_000_000, again: false }
    expect((await payee.control('receive', lateCopy)).json()).toMatchObject({ outcome: 'refused' })
    expect((await payee.incoming(invoice.paymentHash)).isPaid).toBe(false)
    expect(await payer.pay(invoice.serialized)).toHaveProperty('paymentPreimage')
  })
})

test('the released daemon has no crash points', () => {
  expect(readFileSync(CRASHING_SANDBOXD, 'utf8')).toContain('CRASH_AT')
  expect(readFileSync(SANDBOXD, 'utf8')).not.toContain('CRASH_AT')
})
