import { expect, test, vi } from 'vitest'
import { paymentsQuery, paymentTotalsQuery, UNFULFILLED_LATELY } from '../src/api/payments.ts'
import { NODE_ORDERS, orderAfterClick, sortedNodes } from '../src/pages/nodes/node-sort.ts'
import { itemsOf } from '../src/text/attention.ts'
import { filteredNodes, NODE_FILTER_NAMES } from '../src/text/node-filter.ts'

const nodes = { ready: 1, silent: 0, starting: 0, stopped: 0, failed: 0, total: 1 }
const attention = { unclaimedPayments: 0, failedDeliveries: 0, failingWebhooks: 0, disabledWebhooks: 0, updates: 0 }
test('dashboard: nothing needs attention if all is well, or a node was stopped on purpose', () => {
  expect(itemsOf({ nodes, attention }, undefined)).toEqual([])
  expect(itemsOf({ nodes: { ...nodes, ready: 0, stopped: 1 }, attention }, undefined)).toEqual([])
})

test('dashboard: everything that needs attention is named, the worst first, in singular and plural', () => {
  const sentences = (count: number) =>
    itemsOf(
      {
        nodes: { ...nodes, failed: count, silent: count },
        attention: {
          unclaimedPayments: count,
          failedDeliveries: count,
          failingWebhooks: count,
          disabledWebhooks: count,
          updates: count,
        },
      },
      count,
    ).map(({ sentence }) => sentence)
  expect(sentences(1)).toEqual([
    '1 node has failed and cannot receive payments.',
    '1 node does not respond. The service restarts a node that has crashed.',
    'For 1 payment of the last 7 days, the customer got nothing.',
    '1 webhook was disabled because deliveries kept failing.',
    '1 webhook is failing. Deliveries are retried.',
    'An update is available for 1 node.',
  ])
  expect(sentences(30)).toContain('For 30 payments of the last 7 days, the customer got nothing.')
})

test('dashboard: the number of payments that need attention is that of the list behind the link, or none is given', async () => {
  const said = (count: number | undefined) =>
    itemsOf({ nodes, attention: { ...attention, unclaimedPayments: 3, failedDeliveries: 2 } }, count).map(
      ({ sentence }) => sentence,
    )
  expect(said(4)).toEqual(['For 4 payments of the last 7 days, the customer got nothing.'])
  expect(said(0)).toEqual([])
  expect(said(undefined)).toEqual(['Customers may have paid in the last 7 days without getting anything.'])
  const asked: string[] = []
  vi.stubGlobal('fetch', async (address: string) => {
    asked.push(address.replace(/^.*\?/, ''))
    return Response.json({})
  })
  for (const { queryFn } of [paymentsQuery(UNFULFILLED_LATELY), paymentTotalsQuery(UNFULFILLED_LATELY)])
    await queryFn?.({ signal: new AbortController().signal } as never)
  vi.unstubAllGlobals()
  const from = new Date()
  expect(asked).toEqual(Array(2).fill(`state=unfulfilled&from=${from.setHours(-6 * 24, 0, 0, 0) / 1000}`))
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

test('nodes: sorted by a column in both directions, with unknown balances last, and equal ones in their order', () => {
  const node = (id: string, name: string, balanceSat: number | null, createdAt: number) => ({ id, name, balanceSat, createdAt })
  const all = [node('a', 'Shop 10', null, 1), node('b', 'shop 9', 5, 2), node('c', 'Café', 70, 3), node('d', 'Zoo', 5, 4)]
  const received = new Map([['b', 9]])
  const ids = (order?: (typeof NODE_ORDERS)[number]) => sortedNodes(all, order, received).map(({ id }) => id)
  expect(Object.fromEntries(NODE_ORDERS.map((order) => [order, ids(order).join('')]))).toEqual({
    name: 'cbad',
    '-name': 'dabc',
    balance: 'bdca',
    '-balance': 'cbda',
    received: 'acdb',
    '-received': 'bacd',
    created: 'abcd',
    '-created': 'dcba',
  })
  expect(ids().join('')).toBe('abcd')
  // The first click shows what people look for first. Another one reverses it.
  expect([orderAfterClick('name'), orderAfterClick('balance', 'name'), orderAfterClick('created')]).toEqual([
    'name',
    '-balance',
    '-created',
  ])
  expect([orderAfterClick('name', 'name'), orderAfterClick('balance', '-balance')]).toEqual(['-name', 'balance'])
})
