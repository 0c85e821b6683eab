import { expect, test } from 'vitest'
import { gotNothingAt } from '../../contract/src/outcome.ts'
import type { Activity, GatewayPayment, NodePayment } from '../src/api/types.ts'
import { nodeTabs } from '../src/tabs.ts'
import { satsOfMsat } from '../src/text/format.ts'
import { msatToSend, newestCount, nodePaymentWord, sumsOf, undelivered } from '../src/text/payments.ts'
import { creditLasts } from '../src/text/runway.ts'
import { actorOf, sentenceOf } from '../src/text/sentences.ts'
import { isUpdating, softwareSentence, waitsForStart } from '../src/text/updates.ts'

const NOW = 1_800_000_000
const YEAR = 31_557_600

const updates = { currentVersion: '0.8.0', latestVersion: '0.9.0', updateAvailable: true, lastUpdateError: null }

test.each([
  ['stopped', null],
  ['stopped', 'update'],
] as const)(
  'C25: the update of a stopped node waits for its next start, and is not in progress (%s, %s)',
  (status, operation) => {
    const node = { status, operation, updateStatus: 'updating' } as const
    expect([isUpdating(node), waitsForStart(node)]).toEqual([false, true])
    expect(softwareSentence(node, updates)).toMatch(
      /^Version 0\.8\.0\. The update will be installed when the node is next started\./,
    )
  },
)

test.each([
  ['stopped', 'start'],
  ['ready', 'update'],
  ['ready', null],
  ['failed', 'update'],
] as const)('C25: an update of a node that is started, runs or has failed is in progress (%s, %s)', (status, operation) => {
  const node = { status, operation, updateStatus: 'updating' } as const
  expect(softwareSentence(node, updates)).toMatch(/^The node is being updated/)
})

const said = (action: string, detail: Activity['detail'] = {}): string => {
  const { before, after } = sentenceOf({ id: 1, at: NOW, actor: 'user_1', action, target: 'node_1', detail })
  return `${before}old${after}`
}

test('dashboard: the log says that an operation was requested, and only its outcome that it was done', () => {
  expect(['node.start', 'node.stop', 'node.restart', 'node.update'].map((action) => said(action))).toEqual([
    'Node old was asked to start',
    'Node old was asked to stop',
    'Node old was asked to restart',
    'Node old was asked to update its software',
  ])
  expect(said('node.updated')).toBe('Node old was updated')
  expect(said('node.update_failed')).toBe('The update of node old failed')
})

test('dashboard: the log shows a key that did something by its name', () => {
  const keys = [{ id: 'key_1', name: 'Shop server' }]
  expect(actorOf('key_1', 'user_1', keys)).toBe('API key Shop server')
  expect(actorOf('key_2', 'user_1', keys)).toBe('API key key_2')
})

test('dashboard: what is said about a node without a version leaves no gap where it would be', () => {
  const node = { status: 'stopped', operation: null, updateStatus: null } as const
  const said = (updateAvailable: boolean) => softwareSentence(node, { ...updates, currentVersion: '', updateAvailable })
  expect(said(true)).toBe('The node has not started yet. Version 0.9.0 is available. Your data is backed up before the update.')
  expect(said(false)).toBe('The node has not started yet.')
})

test('C24: only the latest version is called that: some installations cannot update nodes', () => {
  const node = { status: 'ready', operation: null, updateStatus: null } as const
  const said = (currentVersion: string) => softwareSentence(node, { ...updates, currentVersion, updateAvailable: false })
  expect(said('0.9.0-sandbox')).toBe('Version 0.9.0-sandbox, the latest version.')
  expect(said('0.8.0')).toBe('Version 0.8.0. No update is available.')
})

const payment = { status: 'paid', heldUntil: null, releases: 0 } as GatewayPayment

test('dashboard: a delivery that was released, or whose claim has lapsed, is not shown as never redeemed', () => {
  expect(undelivered({ ...payment, releases: 1 })).toMatch(/^not yet: it was redeemed, but the delivery failed and was released/)
  expect(undelivered({ ...payment, heldUntil: NOW - 1 })).toMatch(/^not yet: it was redeemed, but the claim lapsed/)
  expect(undelivered(payment)).toBe('not yet: it has not been redeemed')
  expect(undelivered({ ...payment, status: 'expired' })).toBe('no')
})

test('dashboard: a payment counts as “paid, got nothing” by the rule of the filter with that name', () => {
  const settled = { ...payment, status: 'payment_required', settledAt: NOW, delivery: 'none' } as GatewayPayment
  const after = (more: Partial<GatewayPayment>) => gotNothingAt({ ...settled, ...more })
  expect(after({})).toBe(NOW + 600)
  expect(after({ status: 'expired' })).toBe(NOW + 600)
  expect(after({ settledAt: null })).toBeNull()
  // Only validated: whether it was delivered, only the shop knows.
  expect(after({ status: 'paid' })).toBeNull()
  expect(after({ status: 'paid', releases: 1 })).toBe(NOW + 600)
  expect(after({ status: 'paid', heldUntil: NOW - 1 })).toBe(NOW + 600)
  expect(after({ status: 'paid', releases: 1, delivery: 'held' })).toBeNull()
  expect(after({ status: 'paid', releases: 1, delivery: 'done' })).toBeNull()
})

test('dashboard: an expired invoice of a node is not shown as one that may still be paid', () => {
  const invoice = { direction: 'in', isPaid: false, expiresAt: NOW, completedAt: null } as NodePayment
  expect(nodePaymentWord(invoice, NOW - 1)).toBe('Incoming, not paid yet')
  expect(nodePaymentWord(invoice, NOW)).toBe('Incoming, expired')
  expect(nodePaymentWord({ ...invoice, isPaid: true }, NOW)).toBe('Received')
  expect(nodePaymentWord({ ...invoice, expiresAt: null }, NOW)).toBe('Incoming, not paid yet')
})

test('dashboard: a payment of a node says where the money goes, also when it did not get there', () => {
  const words = [true, false].flatMap((isPaid) =>
    (['in', 'out'] as const).map((direction) =>
      nodePaymentWord({ direction, isPaid, expiresAt: null, completedAt: NOW } as NodePayment, NOW),
    ),
  )
  expect(words).toEqual(['Received', 'Sent', 'Incoming, not paid yet', 'Outgoing, failed'])
})

test('dashboard: only money that moved counts in the sums of a node’s payments', () => {
  const payments = (['in', 'out'] as const).flatMap((direction) =>
    [true, true, false].map((isPaid) => ({ direction, isPaid, amountSat: 10, feeMsat: direction === 'out' ? 400 : 0 })),
  )
  expect(sumsOf(payments)).toEqual({ receivedSat: 20, sentSat: 20, feesMsat: 800 })
  expect(sumsOf([])).toEqual({ receivedSat: 0, sentSat: 0, feesMsat: 0 })
})

test('dashboard: one payment is not called “the newest 1”', () => {
  expect([newestCount(1, 1, 'all'), newestCount(0, 1, 'sent')]).toEqual(['1 payment', '0 of 1 payment'])
  expect([newestCount(9, 9, 'all'), newestCount(3, 9, 'sent')]).toEqual(['The newest 9', '3 of the newest 9'])
})

test('dashboard: how long credit lasts is rounded to the nearest year, and never said of credit that is used up', () => {
  const lasts = (runwaySeconds: number | null, balanceMsat = 5) => creditLasts({ balanceMsat, runwaySeconds, nodesThatCost: 1 })
  expect(lasts(0)).toBe('Used up.')
  expect(lasts(-5)).toBe('Used up.')
  expect(lasts(30)).toBe('Will last less than a minute with 1 running node.')
  // lastsUntil, for the top-up amounts, has the same limit of 10 years.
  expect(lasts(10.97 * YEAR)).toBe('Will last more than 10 years with 1 running node.')
  expect(lasts(9.97 * YEAR)).toBe('Will last about 10 years with 1 running node.')
  expect(lasts(null)).toBe('No running node uses it.')
  expect(lasts(null, -5)).toBe('This is what you owe. No running node adds to it.')
})

test('dashboard: the question before sending names the amount of the invoice, to the millisatoshi', () => {
  expect(satsOfMsat(msatToSend({ amountMsat: 1_500 }, 0))).toBe('1.5\u2009sat')
  expect(satsOfMsat(msatToSend({ amountMsat: undefined }, 21))).toBe('21\u2009sat')
})

test('C30: sending is not offered for a node that cannot send; a link to it says why', () => {
  expect(nodeTabs({ accessMode: 'full' }, 'overview')).toContain('send')
  expect(nodeTabs({ accessMode: 'limited' }, 'overview')).not.toContain('send')
  expect(nodeTabs({ accessMode: 'limited' }, 'send')).toContain('send')
})
