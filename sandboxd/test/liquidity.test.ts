import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { admit, type LiquidityPolicy } from '../src/node/liquidity.ts'
import { startNetwork, type TestHub, TestNode } from './harness.ts'

const policy: LiquidityPolicy = {
  autoLiquiditySat: 2_000_000,
  maxMiningFeeSat: 20_000,
  maxFeeCreditSat: 50_000,
  maxRelativeFeePercent: 30,
}

describe('which amounts are accepted', () => {
  test('for every accepted amount, no millisatoshi appears or vanishes, and it fits the channel', () => {
    const sat = fc.integer({ min: 0, max: 100_000_000 })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10 ** 12 }),
        sat,
        fc.option(sat),
        sat,
        fc.boolean(),
        (amountMsat, used, capacity, credit, fees) => {
          const channel = {
            usedMsat: capacity === null ? 0 : Math.min(used, capacity) * 1000,
            capacitySat: capacity,
            feeCreditMsat: credit,
          }
          const result = admit(amountMsat, channel, fees, policy)
          if (!result.admitted) return fees
          const toBalanceMsat = amountMsat - result.toFeeCreditMsat - (result.liquidityFeeMsat - result.feeCreditUsedMsat)
          expect(toBalanceMsat).toBeGreaterThanOrEqual(0)
          expect(result.feeCreditUsedMsat).toBeLessThanOrEqual(channel.feeCreditMsat)
          expect(channel.usedMsat + toBalanceMsat).toBeLessThanOrEqual((result.capacitySat ?? 0) * 1000)
          return true
        },
      ),
    )
  })

  test.each([
    {
      name: 'fits the channel',
      amountSat: 100,
      channel: { usedMsat: 0, capacitySat: 100, feeCreditMsat: 0 },
      expected: { liquidityFeeMsat: 0, capacitySat: 100 },
    },
    {
      name: 'too small for a channel: all of it to the fee credit',
      amountSat: 100,
      channel: { usedMsat: 0, capacitySat: null, feeCreditMsat: 0 },
      expected: { toFeeCreditMsat: 100_000, capacitySat: null },
    },
    {
      name: 'large enough: mining 2710 and service 20000 sat are paid from it',
      amountSat: 100_000,
      channel: { usedMsat: 0, capacitySat: null, feeCreditMsat: 0 },
      expected: { liquidityFeeMsat: 22_710_000, feeCreditUsedMsat: 0, capacitySat: 2_100_000 },
    },
    {
      name: 'the fee credit pays first',
      amountSat: 20_000,
      channel: { usedMsat: 0, capacitySat: null, feeCreditMsat: 20_000_000 },
      expected: { liquidityFeeMsat: 22_710_000, feeCreditUsedMsat: 20_000_000 },
    },
  ])('with fees: $name', ({ amountSat, channel, expected }) => {
    expect(admit(amountSat * 1000, channel, true, policy)).toMatchObject({ admitted: true, ...expected })
  })

  test.each([
    { name: 'auto-liquidity off', change: { autoLiquiditySat: 0 }, line: 'automated liquidity is disabled' },
    {
      name: 'mining fee over the limit',
      change: { maxMiningFeeSat: 100, maxFeeCreditSat: 0 },
      line: 'lightning payment rejected (amount=1000 sat): over absolute fee (fee=2710 sat max=100 sat)',
    },
    {
      name: 'too small, and no fee credit allowed',
      change: { maxFeeCreditSat: 0 },
      line: 'missing offchain amount is too low (missingOffChainAmount=1000 sat currentFeeCredit=0 sat)',
    },
    {
      name: 'relative fee over the limit',
      change: { maxFeeCreditSat: 0, maxRelativeFeePercent: 1 },
      line: 'lightning payment rejected (amount=1000 sat): over relative fee (fee=22710 sat max=1%)',
    },
  ])('rejected: $name', ({ change, line }) => {
    const channel = { usedMsat: 0, capacitySat: null, feeCreditMsat: 0 }
    expect(admit(1_000_000, channel, true, { ...policy, ...change })).toEqual({ admitted: false, consoleLine: line })
  })
})

describe('a node with fee-credit behaviour switched on', () => {
  let hub: TestHub
  let payer: TestNode

  beforeAll(async () => {
    ;({ hub, payer } = await startNetwork())
  })

  test('a small payment is paid and received, but goes to the fee credit and not to the balance', async () => {
    const node = await new TestNode({ hub }).start()
    await node.control('fee-credit', { feeCredit: 'on' })
    const invoice = await node.invoice({ amountSat: 500 })
    expect(await payer.pay(invoice.serialized)).toHaveProperty('paymentPreimage')
    expect(await node.incoming(invoice.paymentHash)).toMatchObject({ isPaid: true, receivedSat: 500 })
    expect(await node.balance()).toEqual({ balanceSat: 0, feeCreditSat: 500 })
    expect((await node.get('/getinfo')).json().channels).toEqual([])
    await node.restart()
    expect(await node.balance()).toEqual({ balanceSat: 0, feeCreditSat: 500 })
    expect((await node.state()).feeCredit).toBe('on')
  })

  test('a large one opens a channel: fee credit pays first, the rest is deducted from the received amount', async () => {
    const node = await new TestNode({ hub }).start()
    await node.control('fee-credit', { feeCredit: 'on' })
    await payer.pay((await node.invoice({ amountSat: 500 })).serialized)
    const invoice = await node.invoice({ amountSat: 100_000 })
    await payer.pay(invoice.serialized)
    expect(await node.balance()).toEqual({ balanceSat: 100_000 - (22_710 - 500), feeCreditSat: 0 })
    expect(await node.incoming(invoice.paymentHash)).toMatchObject({ receivedSat: 77_790, fees: 22_210_000 })
  })

  test('twenty concurrent payments do not spend the same fee credit twice', async () => {
    const node = await new TestNode({ hub }).start()
    await node.control('fee-credit', { feeCredit: 'on' })
    await payer.pay((await node.invoice({ amountSat: 20_000 })).serialized)
    const invoices = await Promise.all(Array.from({ length: 20 }, () => node.invoice({ amountSat: 5_000 })))
    const results = await Promise.all(invoices.map(({ serialized }) => payer.pay(serialized)))
    expect(results.every((result) => 'paymentPreimage' in result)).toBe(true)
    const { balanceMsat, feeCreditMsat } = await node.state()
    expect(feeCreditMsat).toBeGreaterThanOrEqual(0)
    expect(balanceMsat + feeCreditMsat).toBe((20_000 + 20 * 5_000 - 22_710) * 1000)
  })

  test('an amount rejected by the policy is a temporary failure for the payer', async () => {
    const node = await new TestNode({ hub, args: ['--auto-liquidity=off'] }).start()
    await node.control('fee-credit', { feeCredit: 'on' })
    const invoice = await node.invoice({ amountSat: 500 })
    expect((await payer.pay(invoice.serialized)).reason).toBe('a node in the route had a temporary failure')
    expect(node.daemon.stdout).toContain('automated liquidity is disabled')
  })
})
