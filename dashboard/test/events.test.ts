import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { apply } from '../src/api/events.ts'
import { queryClient } from '../src/api/queries.ts'

const PAGES = [['overview'], ['nodes'], ['payments', 'list'], ['credit', 'ledger'], ['credit-usage', 1], ['activity', 'pages']]

beforeEach(() => {
  vi.useFakeTimers()
  for (const queryKey of PAGES) queryClient.setQueryData(queryKey, 'read')
})
afterEach(async () => {
  await vi.runAllTimersAsync()
  vi.useRealTimers()
  queryClient.clear()
})

/** What has to be read again. */
const old = (): string[] =>
  PAGES.flatMap((queryKey) => (queryClient.getQueryState(queryKey)?.isInvalidated ? [queryKey[0] as string] : []))

test('dashboard: a payment costs no credit, so the ledger is not read again for it', () => {
  apply({ nodes: false, payments: true, activity: false })
  expect(old()).toEqual(['overview', 'nodes', 'payments'])
})

test('dashboard: a node that starts or stops, and anything that is logged, may change the credit', async () => {
  apply({ nodes: true, payments: false, activity: false })
  expect(old()).toEqual(['overview', 'nodes', 'credit'])
  await vi.runAllTimersAsync()
  apply({ nodes: false, payments: false, activity: true })
  expect(old()).toContain('activity')
})

test('dashboard: payments appear in an open activity log, and many of them cause one request', async () => {
  const read = vi.spyOn(queryClient, 'invalidateQueries')
  for (let second = 0; second < 14; second++) {
    apply({ nodes: false, payments: true, activity: false })
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(old()).not.toContain('activity')
  await vi.advanceTimersByTimeAsync(2_000)
  expect(old()).toContain('activity')
  expect(read.mock.calls.filter(([filter]) => filter?.queryKey?.[0] === 'activity')).toHaveLength(1)
  read.mockRestore()
})
