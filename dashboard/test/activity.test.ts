import { afterEach, expect, test, vi } from 'vitest'
import { foldQuery } from '../src/api/activity.ts'
import { foldCounts } from '../src/text/sentences.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

const row = { id: 9, nodeId: 'node_1', fold: { payments: 2, entries: 2, received: 0, validated: 2, from: 100, to: 200 } }

test('dashboard: opening folded payments keeps the filters of the log', async () => {
  const asked: URL[] = []
  vi.stubGlobal('fetch', async (address: string) => {
    asked.push(new URL(address, 'http://localhost'))
    return Response.json({ activity: [], nextCursor: null })
  })
  const query = foldQuery({ kind: 'payments', keyId: 'key_1', actor: 'user_1' }, row)
  const signal = new AbortController().signal
  await query.queryFn?.({ pageParam: '10', signal, queryKey: query.queryKey } as never)
  expect(Object.fromEntries(asked[0]?.searchParams ?? [])).toEqual({
    kind: 'payments',
    nodeId: 'node_1',
    keyId: 'key_1',
    actor: 'user_1',
    from: '100',
    to: '201',
    cursor: '10',
  })
  // Results of another filter are never shown for this one.
  expect(foldQuery({ keyId: 'key_2' }, row).queryKey).not.toEqual(query.queryKey)
})

test('dashboard: folded payments are not said to be “0 received” where the filter left those entries out', () => {
  const paid = { received: 0, validated: 3 }
  expect(foldCounts(paid, {})).toBe('0 received, 3 validated')
  expect(foldCounts(paid, { nodeId: 'node_1', from: '2026-10-01' })).toBe('0 received, 3 validated')
  expect([foldCounts(paid, { actor: 'user_1' }), foldCounts(paid, { keyId: 'key_1' })]).toEqual(['3 validated', '3 validated'])
  expect(foldCounts({ received: 1_234, validated: 0 }, { actor: 'service' })).toBe('1\u2009234 received')
})
