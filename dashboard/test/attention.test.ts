import { expect, test } from 'vitest'
import { itemsOf } from '../src/text/attention.ts'
import { filteredNodes, NODE_FILTER_NAMES } from '../src/text/node-filter.ts'

const nodes = { ready: 1, silent: 0, starting: 0, stopped: 0, failed: 0, total: 1 }
const attention = { unclaimedPayments: 0, failedDeliveries: 0, failingWebhooks: 0, disabledWebhooks: 0, updates: 0 }
const credit = {
  balanceSat: 10,
  balanceMsat: 10_000,
  unpostedMsat: 0,
  nodesThatCost: 1,
  runwaySeconds: 3 * 86_400,
  warning: 'none' as const,
  stopsAt: null,
  graceHours: 48,
  canTopUp: true,
}

test('dashboard: nothing needs attention if all is well, or a node was stopped on purpose', () => {
  expect(itemsOf({ nodes, attention, credit })).toEqual([])
  expect(itemsOf({ nodes: { ...nodes, ready: 0, stopped: 1 }, attention, credit })).toEqual([])
})

test('dashboard: everything that needs attention is named, the worst first, in singular and plural', () => {
  const sentences = (count: number) =>
    itemsOf({
      nodes: { ...nodes, failed: count, silent: count },
      attention: {
        unclaimedPayments: count,
        failedDeliveries: count,
        failingWebhooks: count,
        disabledWebhooks: count,
        updates: count,
      },
      credit: { ...credit, warning: 'week' },
    }).map(({ sentence }) => sentence)
  expect(sentences(1)).toEqual([
    '1 node has failed and cannot receive payments.',
    'Your credit is running low. Will last about 3 days with 1 running node.',
    '1 node does not respond. The service restarts a node that has crashed.',
    '1 delivery of the last 24 hours failed or was never confirmed. The customer has paid.',
    '1 customer has paid in the last 7 days without coming back for what they paid for.',
    '1 webhook was disabled because deliveries kept failing.',
    '1 webhook is failing. Deliveries are retried.',
    'An update is available for 1 node.',
  ])
  expect(sentences(30)).toContain('30 customers have paid in the last 7 days without coming back for what they paid for.')
  expect(sentences(30)).toContain('30 deliveries of the last 24 hours failed or were never confirmed. The customers have paid.')
})

const node = (fields: object) => ({
  id: 'node_1',
  name: 'Shop',
  status: 'ready' as const,
  operation: null,
  isSilent: false,
  updateAvailable: false,
  updateStatus: null,
  version: '0.8.0-abcdef1',
  ...fields,
})

test('dashboard: nodes are found by name, id and version, and each is in exactly one status', () => {
  const all = [
    node({}),
    node({ id: 'node_2', name: 'Café', status: 'stopped' }),
    node({ id: 'node_3', isSilent: true }),
    node({ id: 'node_4', status: 'failed' }),
    node({ id: 'node_5', status: 'provisioning', version: null }),
    node({ id: 'node_6', operation: 'restart' }),
  ]
  const ids = (show: Parameters<typeof filteredNodes>[1], text = '') => filteredNodes(all, show, text).map(({ id }) => id)
  expect(ids(undefined, ' CAFÉ ')).toEqual(['node_2'])
  expect(ids(undefined, 'NODE_4')).toEqual(['node_4'])
  expect(ids(undefined, '0.8.0')).toHaveLength(5)
  const statuses = NODE_FILTER_NAMES.filter((name) => name !== 'update')
  expect(statuses.flatMap((show) => ids(show)).sort()).toEqual(all.map(({ id }) => id))
  expect(filteredNodes([node({ updateAvailable: true }), node({})], 'update', '')).toHaveLength(1)
})
