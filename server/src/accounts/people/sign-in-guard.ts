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

/** Whose password is tried, and from where. Both are names that cannot be mistaken for one another: `email …`, `device …`. */
export type Guess = { target: string; source: string }
export type Attempt = {
  /** The password was right: the next ones begin at zero. */
  succeeded: () => Promise<void>
  /** It was not looked at, for want of time or of a store: it was no failure. */
  takeBack: () => Promise<void>
}

/**
 * C44: people choose their passwords, so guessing must be slow, and it is refused before anything is hashed. Counted in the database, for
 * all processes together, whatever the deployment counts its other limits with. An email that nobody has is counted like any other: the
 * pause tells nobody who is registered.
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

  /** Each sign-up makes an account, and tells whether the email has one already. */
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
