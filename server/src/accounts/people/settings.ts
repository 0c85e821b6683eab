import type { Config } from '../../config.ts'
import { emailTaken, Problem } from '../../problems.ts'
import { renameAccount } from '../../store/accounts.ts'
import { closeAccount, type MoneyLeft, moneyLeft, type NodesLeft, nodesLeft } from '../../store/closing.ts'
import type { Database } from '../../store/db.ts'
import { changeEmail, endSession, hasUsedPasskey, removePasskey } from '../../store/people/settings.ts'
import { RESERVED_NAMES } from '../accounts.ts'
import { type Client, emailOf, type Person, type SignIn } from './sign-in.ts'
import type { Guess } from './sign-in-guard.ts'
import type { TwoFactor, TwoFactorStatus } from './two-factor.ts'

/** For this long after a sign-in with a passkey, no password is needed. */
const RECENT_SECONDS = 600

export type PasskeyProof = { password?: string | undefined; code?: string | undefined }
export type Security = { twoFactor: TwoFactorStatus; hasRecentPasskey: boolean }
/** Whether the account can be deleted, and the explanation that the page shows. */
export type Deletion = NodesLeft & MoneyLeft & { isPossible: boolean; explanation: string }

type Deps = { sql: Database; config: Config; signIn: SignIn; twoFactor: TwoFactor; forgetKeys: () => void }

/**
 * What people change about themselves. A stolen session must not be enough, so most changes require the password, a passkey or a
 * code again.
 */
export class Settings {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async security(person: Person): Promise<Security> {
    const { sql, twoFactor } = this.#deps
    const [status, hasRecentPasskey] = await Promise.all([
      twoFactor.status(person.userId),
      hasUsedPasskey(sql, person.sessionId, RECENT_SECONDS),
    ])
    return { twoFactor: status, hasRecentPasskey }
  }

  /** `admit` limits how often someone can find out which addresses are registered. */
  async changeEmail(
    client: Client,
    person: Person,
    { email: given, password }: { email: string; password?: string },
    admit: () => Promise<void>,
  ): Promise<{ email: string }> {
    const email = emailOf(given)
    await this.#confirm(client, person, password)
    await admit()
    try {
      await changeEmail(this.#deps.sql, person.userId, email)
    } catch (error) {
      throw (error as { constraint?: string }).constraint === 'people_email' ? emailTaken() : error
    }
    return { email }
  }

  async renameAccount(person: Person, given: string): Promise<{ name: string }> {
    const name = given.trim()
    if (RESERVED_NAMES.includes(name.toLowerCase())) throw new Problem('bad_request', 'This name is reserved. Choose another.')
    await renameAccount(this.#deps.sql, person.accountId, name, person.userId)
    return { name }
  }

  async endSession(person: Person, sessionId: string): Promise<void> {
    const isId = /^[A-Za-z0-9_-]{1,64}$/.test(sessionId)
    if (!isId || !(await endSession(this.#deps.sql, person.userId, sessionId)))
      throw new Problem('not_found', 'There is no such session.')
  }

  /** A passkey is both factors at once, and outlives sessions and passwords. So a change of passkeys asks for both. */
  async confirmPasskeyChange(client: Client, person: Person, { password, code }: PasskeyProof): Promise<void> {
    const { isOn } = await this.#deps.twoFactor.status(person.userId)
    if (isOn && code === undefined)
      throw new Problem('bad_request', 'Enter a code from your authenticator app.', { details: { reason: 'code_required' } })
    await this.#confirm(client, person, password)
    if (isOn && code !== undefined) await this.#withCode(person.userId, () => this.#useCode(person, code))
  }

  async removePasskey(client: Client, person: Person, id: string, proof: PasskeyProof): Promise<void> {
    await this.confirmPasskeyChange(client, person, proof)
    const outcome = await removePasskey(this.#deps.sql, person.userId, id)
    if (outcome === 'not found') throw new Problem('not_found', 'There is no such passkey.')
    if (outcome === 'last way in')
      throw new Problem('bad_request', 'This passkey is the only way to sign in to this account. Set a password first.')
  }

  async beginTwoFactor(client: Client, person: Person, password: string | undefined): Promise<{ secret: string; uri: string }> {
    await this.#confirm(client, person, password)
    return this.#deps.twoFactor.begin(person.userId, person.email)
  }

  confirmTwoFactor({ userId }: Person, code: string): Promise<string[]> {
    return this.#withCode(userId, () => this.#deps.twoFactor.confirm(userId, code))
  }

  replaceRecoveryCodes({ userId }: Person, code: string): Promise<string[]> {
    return this.#withCode(userId, () => this.#deps.twoFactor.replaceRecoveryCodes(userId, code))
  }

  async turnOffTwoFactor({ userId }: Person, code: string): Promise<void> {
    await this.#withCode(userId, async () => (await this.#deps.twoFactor.turnOff(userId, code)) || undefined)
  }

  async deletion({ accountId }: Person): Promise<Deletion> {
    const { sql, config } = this.#deps
    const [nodes, money] = await Promise.all([nodesLeft(sql, accountId, config.retentionDays), moneyLeft(sql, accountId)])
    const isPossible = nodes.existing + nodes.retained === 0 && money.topUpUntil === null
    return { ...nodes, ...money, isPossible, explanation: explanationOf({ ...nodes, ...money }, config.retentionDays) }
  }

  async deleteAccount(client: Client, person: Person, { name, password }: { name: string; password?: string }): Promise<void> {
    const { sql, forgetKeys } = this.#deps
    await this.#requireDeletable(person)
    await this.#confirm(client, person, password)
    const outcome = await closeAccount(sql, { accountId: person.accountId, personId: person.userId, name })
    forgetKeys()
    if (outcome === 'other name') throw new Problem('bad_request', 'This is not the name of the account. Enter the name exactly.')
    if (outcome === 'closed') return
    // A node or a top-up was created since the check above, and may be gone again by now.
    await this.#requireDeletable(person)
    throw new Problem('invalid_node_state', 'The account has changed meanwhile and was not deleted. Try again.')
  }

  async #requireDeletable(person: Person): Promise<void> {
    const { isPossible, explanation, dueAt, topUpUntil, existing, retained } = await this.deletion(person)
    if (isPossible) return
    const details = existing + retained > 0 ? { reason: 'has_nodes', dueAt } : { reason: 'open_top_up', topUpUntil }
    throw new Problem('invalid_node_state', explanation, { details })
  }

  /** With the password, or with a passkey that was used to sign in a moment ago. */
  async #confirm(client: Client, { userId, sessionId }: Person, password: string | undefined): Promise<void> {
    const { sql, signIn } = this.#deps
    if (password === undefined) {
      if (await hasUsedPasskey(sql, sessionId, RECENT_SECONDS)) return
      throw new Problem('bad_request', 'Enter your password, or confirm with a passkey.', {
        details: { reason: 'confirmation_required' },
      })
    }
    // Shares a count with changing the password, because both allow guesses at the same password.
    const who = `person ${userId}`
    const known = { ...client, isKnown: true }
    const isRight = await this.#counted({ target: who, source: who }, async () =>
      (await signIn.isPasswordOf(known, userId, password)) ? true : undefined,
    )
    if (!isRight) throw new Problem('bad_request', 'The password is incorrect.', { details: { reason: 'wrong_password' } })
  }

  async #useCode({ userId }: Person, code: string): Promise<true | undefined> {
    return (await this.#deps.twoFactor.use(this.#deps.sql, userId, code)) || undefined
  }

  async #withCode<T>(userId: string, work: () => Promise<T | undefined>): Promise<T> {
    const who = `code person ${userId}`
    const result = await this.#counted({ target: who, source: who }, work)
    if (result === undefined) throw new Problem('bad_request', WRONG_CODE, { details: { reason: 'wrong_code' } })
    return result
  }

  /**
   * C44: an attempt is counted as failed before `work` checks the guess. If `work` returns undefined, the guess was wrong and
   * stays counted.
   */
  async #counted<T>(guess: Guess, work: () => Promise<T | undefined>): Promise<T | undefined> {
    const attempt = await this.#deps.signIn.guard.admit(guess)
    let result: T | undefined
    try {
      result = await work()
    } catch (error) {
      // If this fails too, the store is down, and the first error says so.
      await attempt.takeBack().catch(() => undefined)
      throw error
    }
    if (result !== undefined) await attempt.succeeded()
    return result
  }
}

export const WRONG_CODE =
  'The code is incorrect, has expired or was already used. Wait for the next one in your authenticator app, and check that your phone’s clock is correct.'

const dateOf = (seconds: number): string => `${new Date(seconds * 1000).toISOString().replace('T', ' ').slice(0, 16)} UTC`

function explanationOf({ existing, retained, dueAt, topUpUntil }: NodesLeft & MoneyLeft, retentionDays: number): string {
  const days = `${retentionDays} ${retentionDays === 1 ? 'day' : 'days'}`
  if (existing > 0)
    return `The account still has ${existing === 1 ? 'a node' : `${existing} nodes`}. Delete ${existing === 1 ? 'it' : 'them'} first. Deleted nodes are kept for ${days} in case they hold money, and the account can be deleted after that.`
  const now = Date.now() / 1000
  if (retained === 0 && topUpUntil === null) return 'The account can be deleted now.'
  if (retained === 0 && topUpUntil !== null)
    return topUpUntil > now
      ? `An invoice for credit can be paid until ${dateOf(topUpUntil)}, and its payment would be lost. The account can be deleted a few minutes after that.`
      : 'An invoice for credit has expired, and it is not known yet whether it was paid. Try again in a few minutes.'
  const nodes = retained === 1 ? 'A deleted node is' : `${retained} deleted nodes are`
  if (dueAt === null)
    return `${nodes} still being handed over to another installation. The account can be deleted ${days} after that is done.`
  if (dueAt < now) return `${nodes} about to be removed. If this does not change within a day, ask the operator.`
  return `${nodes} kept until ${dateOf(dueAt)}, in case ${retained === 1 ? 'it holds' : 'they hold'} money. The account can be deleted after that.`
}
