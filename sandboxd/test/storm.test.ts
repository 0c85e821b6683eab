import { expect, test } from 'vitest'
import { eventually, TestHub, TestNode } from './harness.ts'

/** With FULL=1, there are ten times as many payments. */
const SCALE = process.env.FULL === '1' ? 10 : 1
const PAYMENTS = 200 * SCALE
const FUNDED_SAT = 10_000_000
const KILLS_EACH = 3
/** On a busy machine, a start takes longer than the pause between two kills. Without a limit, no payment would ever succeed. */
const MOST_KILLS_EACH = 5 * SCALE

/** A seeded random generator: the printed seed identifies a run, although the machine's timing is not reproducible. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

type Outcome = 'sent' | 'failed'

/** Pays like a careful client: after a lost response, it checks before it pays again. */
async function payToTheEnd(payer: TestNode, invoice: { serialized: string; paymentHash: string }): Promise<Outcome> {
  for (;;) {
    try {
      return 'paymentPreimage' in (await payer.pay(invoice.serialized)) ? 'sent' : 'failed'
    } catch {
      // The payer died, so the result must be looked up.
    }
    const row = await eventually(async () => {
      const answer = await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)
      if (answer.status === 404) return 'never started'
      return answer.json().completedAt && answer.json()
    }, 'the payer to say what became of a payment')
    if (row !== 'never started') return row.isPaid ? 'sent' : 'failed'
  }
}

test(`${PAYMENTS} payments at once while payer, payee and hub are killed at random: no millisatoshi is lost or created, a sent payment is received once, a failed one never`, {
  timeout: 240_000,
}, async () => {
  const seed = Date.now() % 1_000_000
  const random = generator(seed)
  const hub = await new TestHub().start()
  const [a, b] = await Promise.all([new TestNode({ hub }).start(), new TestNode({ hub }).start()])
  await Promise.all([hub.fund(a, FUNDED_SAT), hub.fund(b, FUNDED_SAT)])

  const orders = await Promise.all(
    Array.from({ length: PAYMENTS }, async (_, index) => {
      const [payer, payee] = index % 2 ? [a, b] : [b, a]
      return { payer, payee, amountSat: 1 + (index % 997), invoice: await payee.invoice({ amountSat: 1 + (index % 997) }) }
    }),
  )

  let over = false
  let arrived = 0
  const kills = new Map<object, number>()
  const torment = async (victim: TestHub | TestNode): Promise<void> => {
    const killed = (): number => kills.get(victim) ?? 0
    // On a busy machine, the first kill could otherwise come before any payment, and then no payment would find its recipient.
    await eventually(() => arrived > PAYMENTS / 10, 'the first payments')
    for (let pauseMs = random() * 300; killed() < (over ? KILLS_EACH : MOST_KILLS_EACH); pauseMs = 300 + random() * 1_500) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      await victim.restart()
      kills.set(victim, killed() + 1)
    }
  }
  const torments = Promise.all([hub, a, b].map(torment))
  const outcomes = await Promise.all(
    orders.map(async ({ payer, invoice }) => {
      const outcome = await payToTheEnd(payer, invoice)
      if (outcome === 'sent') arrived++
      return outcome
    }),
  )
  over = true
  await torments
  await eventually(async () => (await a.state()).pendingMsat === 0 && (await b.state()).pendingMsat === 0, 'every payment to end')

  const sent = outcomes.filter((outcome) => outcome === 'sent').length
  const injected = [hub, a, b].map((victim) => kills.get(victim) ?? 0)
  process.stdout.write(`storm: seed ${seed}, ${sent} sent, ${PAYMENTS - sent} failed, kills of hub/a/b ${injected.join('/')}\n`)
  expect(Math.min(...injected)).toBeGreaterThanOrEqual(KILLS_EACH)
  expect(sent, 'a storm in which nothing arrives proves nothing').toBeGreaterThan(PAYMENTS / 10)

  let feesMsat = 0
  for (const [index, { payer, payee, amountSat, invoice }] of orders.entries()) {
    const received = await payee.incoming(invoice.paymentHash)
    const attempts = (await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json()
    expect({ index, isPaid: received.isPaid, receivedSat: received.receivedSat, payerSays: attempts.isPaid }).toEqual({
      index,
      isPaid: outcomes[index] === 'sent',
      receivedSat: outcomes[index] === 'sent' ? amountSat : 0,
      payerSays: outcomes[index] === 'sent',
    })
    feesMsat += attempts.fees
  }
  const [inA, inB] = [(await a.state()).balanceMsat, (await b.state()).balanceMsat]
  expect(inA + inB + feesMsat).toBe(2 * FUNDED_SAT * 1000)
  expect((await hub.get('/wallet')).json()).toEqual({ grantedMsat: 2 * FUNDED_SAT * 1000, paidMsat: 0, pending: 0 })
})
