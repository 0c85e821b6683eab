import { expect, test } from 'vitest'
import { hasFunds } from '../src/lightning/phoenixd.ts'

const info = (blockHeight: number | undefined, ...channels: { state: string; balanceSat?: number }[]) => ({
  nodeId: '',
  version: '',
  blockHeight,
  channels,
})

test.each([
  ['a channel with money', info(1, { state: 'Normal', balanceSat: 1 }), true],
  ['a channel without', info(1, { state: 'Normal', balanceSat: 0 }), false],
  ['no channel', info(1), false],
  ['no channel, but no block height either: not restored yet', info(undefined), undefined],
  ['a channel that is offline', info(1, { state: 'Offline(Normal)' }), undefined],
  ['one of two is syncing', info(1, { state: 'Normal', balanceSat: 0 }, { state: 'Syncing(Normal)' }), undefined],
  ['a channel that is closing', info(1, { state: 'Closing', balanceSat: 0 }), undefined],
] as const)('C26: what is known of funds: %s', (_name, answer, known) => {
  expect(hasFunds(answer)).toBe(known)
})
