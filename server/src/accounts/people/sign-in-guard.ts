import { createHmac } from 'node:crypto'
import { derivedKey, type MasterKey } from '../../platform/secrets.ts'
import { Problem } from '../../problems.ts'
import type { Sql } from '../../store/db.ts'
import { countHit } from '../../store/limits.ts'
import { countAttempt, forgetFailures, takeBackAttempt } from '../../store/people/sign-in-failures.ts'

const MAX_ATTEMPTS = 20
const ATTEMPTS_WINDOW_MS = 60_000
const MAX_SIGN_UPS = 5
const SIGN_UPS_WINDOW_MS = 3_600_000

/**
 * What is guessed at (a password, a code or the operator token), and from where. Each value begins with its kind, such as `email
 * …` or `address …`, so that two kinds never share a count.
 */
export type Guess = { target: string; source: string }
export type Attempt = {
  /** The guess was correct: the count starts again at zero. */
  succeeded: () => Promise<void>
  /** The attempt ended for a reason other than a wrong guess, such as a timeout or an unavailable store. */
  takeBack: () => Promise<void>
}

/**
 * C44: people choose weak passwords, so guessing must be slow, and attempts are rejected before anything is hashed. Counts are kept in the
 * database and apply to all processes, even if the deployment counts its other limits in memory or in Redis. Unknown emails are counted
 * too, so a pause does not reveal who is registered.
 */
export class SignInGuard {
  readonly #sql: Sql
  readonly #secret: Buffer

  constructor({ sql, master }: { sql: Sql; master: MasterKey }) {
    this.#sql = sql
    this.#secret = derivedKey(master, 'sign-in failures')
  }

  async admit({ target, source }: Guess): Promise<Attempt> {
    const { hits, remainingMs } = await countHit(this.#sql, `sign-in ${source}`, ATTEMPTS_WINDOW_MS)
    if (hits > MAX_ATTEMPTS) throw tooMany(remainingMs)
    const key = createHmac('sha256', this.#secret).update(target).digest()
    const { pauseMs } = await countAttempt(this.#sql, key)
    if (pauseMs > 0) throw tooMany(pauseMs)
    return { succeeded: () => forgetFailures(this.#sql, key), takeBack: () => takeBackAttempt(this.#sql, key) }
  }

  /** Each sign-up creates an account, and reveals whether the email already has one. */
  async admitSignUp(address: string): Promise<void> {
    const { hits, remainingMs } = await countHit(this.#sql, `sign-up ${address}`, SIGN_UPS_WINDOW_MS)
    if (hits > MAX_SIGN_UPS) throw tooMany(remainingMs)
  }
}

function tooMany(waitMs: number): Problem {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new Problem('rate_limited', `Too many attempts. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`, {
    headers: { 'retry-after': String(seconds) },
  })
}
