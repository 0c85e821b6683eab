import { ApiError, freshKey } from './client.ts'

/** A change of credit that was sent, and whose outcome is not known. */
export type CreditAttempt = { accountId: string; amountSat: number; reason: string; key: string; sentAtMs: number }
type Credit = Pick<CreditAttempt, 'accountId' | 'amountSat' | 'reason'>

const STORED = 'boltyard-credit-attempts'
/** The service forgets an idempotency key after a day. A repeated request would then change the credit a second time. */
const KEY_LIFE_MS = 23 * 3_600_000
/** The service responds with these before it looks at the key, so they say nothing about an earlier request with the same key. */
const REFUSED_AT_THE_DOOR = [401, 403, 429]

let attempts: CreditAttempt[] = stored()

function stored(): CreditAttempt[] {
  try {
    return JSON.parse(globalThis.sessionStorage?.getItem(STORED) ?? '[]')
  } catch {
    return []
  }
}

function keep(kept: CreditAttempt[]): void {
  attempts = kept
  try {
    globalThis.sessionStorage?.setItem(STORED, JSON.stringify(kept))
  } catch {
    // Without storage, the attempts are kept until the page is left.
  }
}

/** The latest first. */
export const openAttempts = (accountId: string): CreditAttempt[] =>
  attempts.filter((one) => one.accountId === accountId && Date.now() - one.sentAtMs < KEY_LIFE_MS)

export const isSameCredit = (one: Credit, other: Credit): boolean =>
  one.accountId === other.accountId && one.amountSat === other.amountSat && one.reason === other.reason

/**
 * The same change has the same key until its outcome is known: also after the dialog was closed, after a new sign-in and after a reload.
 * Otherwise a second try after a lost response would be a second change.
 */
export async function sendOnce<T>(credit: Credit, send: (key: string) => Promise<T>): Promise<T> {
  const earlier = openAttempts(credit.accountId).find((one) => isSameCredit(one, credit))
  const attempt = earlier ?? { ...credit, key: freshKey(), sentAtMs: Date.now() }
  const others = (): CreditAttempt[] => attempts.filter(({ key }) => key !== attempt.key)
  keep([attempt, ...others()])
  try {
    const answer = await send(attempt.key)
    keep(others())
    return answer
  } catch (error) {
    const isRefused = error instanceof ApiError && !error.isUncertain
    if (isRefused && !(earlier && REFUSED_AT_THE_DOOR.includes(error.status))) keep(others())
    throw error
  }
}
