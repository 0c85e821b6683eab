import { afterEach, expect, test, vi } from 'vitest'
import { ApiError, api } from '../../src/api/client.ts'
import { openAttempts, sendOnce } from '../../src/api/credit-attempts.ts'

afterEach(() => vi.unstubAllGlobals())

/** Sends through the real client; only the network is replaced. */
async function send(accountId: string, amountSat: number, answer: () => Response): Promise<{ key: string; error: unknown }> {
  let key = ''
  vi.stubGlobal('fetch', async (_url: string, { headers }: { headers: Record<string, string> }) => {
    key = headers['idempotency-key'] ?? ''
    return answer()
  })
  const error = await sendOnce({ accountId, amountSat, reason: 'Sorry' }, (idempotencyKey) =>
    api.post('/credit', {}, { idempotencyKey, keepsSession: true }),
  ).catch((cause: unknown) => cause)
  return { key, error }
}
const refused = (status: number, code: string, reason?: string) => () =>
  new Response(JSON.stringify({ error: { code, message: 'No.', reason } }), { status })
const lost = (): Response => {
  throw new TypeError('the network failed')
}
const done = (): Response => new Response('{}')

test.each([
  ['a lost response', lost],
  ['a proxy that did not wait', refused(504, 'status_504')],
  ['a node whose response was lost', refused(502, 'payment_service_unavailable', 'outcome_unknown')],
  ['a first request that is still running', refused(409, 'operation_in_progress')],
])('C86: after %s, the same credit is sent with the same key, also after a new sign-in', async (name, uncertain) => {
  const first = await send(name, 5_000, uncertain)
  expect(first.error).toMatchObject({ isUncertain: true })
  expect(openAttempts(name)).toMatchObject([{ amountSat: 5_000, reason: 'Sorry', key: first.key }])
  const over = await send(name, 5_000, refused(401, 'unauthorized'))
  expect(over.error).toBeInstanceOf(ApiError)
  expect(openAttempts(name)).toHaveLength(1)
  const other = await send(name, 7_000, lost)
  const again = await send(name, 5_000, done)
  expect(new Set([first.key, over.key, again.key])).toEqual(new Set([first.key]))
  expect(other.key).not.toBe(first.key)
  // The outcome of the first change is known now, so the next request is a new change.
  expect(openAttempts(name).map(({ amountSat }) => amountSat)).toEqual([7_000])
  expect((await send(name, 5_000, done)).key).not.toBe(first.key)
})

test.each([
  ['bad_request', 400],
  ['unauthorized', 401],
  ['rate_limited', 429],
  ['payment_service_unavailable', 502],
])('C86: a credit that was refused with %s is not taken for one that may have worked', async (code, status) => {
  await send(code, 5_000, refused(status, code))
  expect(openAttempts(code)).toEqual([])
})
