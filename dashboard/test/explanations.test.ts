import { afterEach, expect, test, vi } from 'vitest'
import { ApiError, api } from '../src/api/client.ts'
import { balanceNote } from '../src/pages/node/balance-note.ts'
import { explain } from '../src/text/explanations.ts'

afterEach(() => vi.unstubAllGlobals())

test.each([
  [1, 'about 1 minute'],
  [60, 'about 1 minute'],
  [61, 'about 2 minutes'],
  [119, 'about 2 minutes'],
  [900, 'about 15 minutes'],
])('C44: whoever has to wait %i s is not told less than that', (retryAfterSeconds, wait) => {
  const error = new ApiError({ status: 429, code: 'rate_limited', message: 'Too many attempts.', retryAfterSeconds })
  expect(explain(error).next).toBe(`Try again in ${wait}.`)
})

test.each([
  [503, 'service_unavailable'],
  [504, 'status_504'],
])('a change that may have been made in spite of status %i is to be checked, not repeated', (status, code) => {
  const error = new ApiError({ status, code, message: 'The service is shutting down.', isUncertain: true })
  expect(explain(error)).toEqual({
    why: 'The service is shutting down.',
    next: 'Check whether it worked before you try again.',
  })
})

test.each([
  [502, 'The service cannot be reached (status 502).'],
  [503, 'The service cannot be reached (status 503).'],
  [504, 'The service did not respond in time (status 504).'],
])('a page of a proxy with status %i is not shown as a response of the service', async (status, why) => {
  vi.stubGlobal('fetch', async () => new Response('<html><h1>Bad Gateway</h1></html>', { status }))
  const read = await api.get('/nodes').catch((error: unknown) => error)
  expect(explain(read)).toEqual({ why, next: 'Try again in a few seconds.' })
  const change = await api.post('/nodes').catch((error: unknown) => error)
  expect(explain(change)).toEqual({ why, next: 'Check whether it worked before you try again.' })
})

const LATER = 'The current balance appears when the node is ready.'

test.each([
  ['stopped', 21, `The node is stopped. Your money is safe. ${LATER}`],
  ['stopped', null, `The balance is unknown while the node is stopped. Your money is safe. ${LATER}`],
  ['failed', 21, `The node is not ready. ${LATER}`],
  ['failed', null, `The balance is unknown while the node is not ready. ${LATER}`],
] as const)('a node that is %s, with the last balance %s: a failed node may be running', (status, balanceSat, note) => {
  expect(balanceNote({ status, balanceSat })).toBe(note)
})
