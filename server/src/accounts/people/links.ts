import { createHash, randomBytes } from 'node:crypto'
import type { Config } from '../../config.ts'
import { isId } from '../../platform/ids.ts'
import { noSuchAccount, Problem } from '../../problems.ts'
import type { Sql } from '../../store/db.ts'
import {
  findLink,
  hasOpenClaim,
  insertAccountLink,
  insertInvitation,
  type LinkKind,
  type LinkRow,
  useLink,
} from '../../store/people/links.ts'
import { findAccountOf, findPersonOf } from '../../store/people/people.ts'
import { endTwoFactor, hasTwoFactor } from '../../store/people/two-factor.ts'
import { FIRST_ACCOUNT_NAME } from '../accounts.ts'
import { type Client, type Entered, emailOf, type NewPerson, newPasswordOf, type SignIn } from './sign-in.ts'

export type NewLink = { url: string; expiresAt: number; kind: LinkKind; email: string | null }
export type LinkInfo = {
  kind: LinkKind
  email: string | null
  needsPassword: boolean
  hasAccount: boolean
  turnsOffTwoFactor: boolean
  expiresAt: number
}
export type Acceptance = { token: string; email?: string; name?: string; password?: string }

const DAY_SECONDS = 24 * 3600
const FIRST_CLAIM_SECONDS = 30 * DAY_SECONDS
const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Unknown, used, expired, or for an account that already has an owner: the response does not reveal which. */
const noSuchLink = (): Problem => new Problem('not_found', 'This link is invalid or has expired. Ask for a new one.')

/**
 * Links give access without a password: after the first start, with an invitation, or if the password is forgotten (we send no email). The
 * token has 256 random bits and is in the fragment of the URL, which browsers do not send, so it reaches no log. We store only its hash.
 */
export class Links {
  readonly #sql: Sql
  readonly #config: Config
  readonly #signIn: SignIn

  constructor({ sql, config, signIn }: { sql: Sql; config: Config; signIn: SignIn }) {
    this.#sql = sql
    this.#config = config
    this.#signIn = signIn
  }

  /** Valid longer than other links, because it is in a file that only the owner of the machine can read. */
  async firstClaim(accountId: string): Promise<NewLink> {
    return this.#toAccount(accountId, FIRST_CLAIM_SECONDS, 'first run')
  }

  async toAccount(accountId: string, actor: string): Promise<NewLink> {
    return this.#toAccount(accountId, DAY_SECONDS, actor)
  }

  /** The account is found by the email that its owner signs in with, because two accounts may have the same name. */
  async toEmail(email: string, actor: string): Promise<NewLink> {
    const accountId = await findAccountOf(this.#sql, emailOf(email))
    if (accountId === undefined) throw new Problem('not_found', 'There is no account with this email address.')
    return this.toAccount(accountId, actor)
  }

  /** Whether the account of the first start has no owner yet and its link is still valid. */
  isFirstAccountOpen(): Promise<boolean> {
    return hasOpenClaim(this.#sql, FIRST_ACCOUNT_NAME)
  }

  async invite(email: string | undefined): Promise<NewLink> {
    if (this.#config.registration === 'off')
      throw new Problem(
        'bad_request',
        'Invitations are disabled because REGISTRATION is off. You can still create a sign-in link for an existing account.',
      )
    const invited = email === undefined ? undefined : emailOf(email)
    if (await this.#hasAccount(invited))
      throw new Problem(
        'account_exists',
        'This person already has an account. Use “Give access…” on it, or create a link with POST /operator/v1/sign-in-links.',
      )
    const { token, url } = this.#newToken()
    const { expiresAt } = await insertInvitation(this.#sql, { hash: hashOf(token), email: invited, seconds: DAY_SECONDS })
    return { url, expiresAt, kind: 'invitation', email: invited ?? null }
  }

  async inspect(token: string): Promise<LinkInfo> {
    const { kind, email, accountId, expiresAt } = await this.#find(token)
    const turnsOffTwoFactor = kind === 'sign-in' && (await hasTwoFactor(this.#sql, accountId ?? ''))
    // By now there may be an account with this address.
    const hasAccount = kind === 'invitation' && (await this.#hasAccount(email ?? undefined))
    return { kind, email, needsPassword: kind !== 'sign-in', hasAccount, turnsOffTwoFactor, expiresAt }
  }

  /** All or nothing: if the person cannot be created, for example because the email is taken, the link can be used again. */
  async accept(given: Acceptance, client: Client): Promise<Entered> {
    const password = given.password === undefined ? undefined : newPasswordOf(given.password)
    // Checked before the password is hashed: without a valid link, a caller must not cost us CPU time.
    const { kind, email: wanted } = await this.#find(given.token)
    const email = given.email === undefined ? (wanted ?? undefined) : emailOf(given.email)
    if (wanted !== null && email !== wanted) throw new Problem('bad_request', `This link is for ${wanted}.`)
    if (kind === 'sign-in' && given.name !== undefined)
      throw new Problem('bad_request', 'The field "name" is only allowed when you sign up.')
    if (kind !== 'sign-in' && email === undefined) throw new Problem('bad_request', 'The field "email" is missing.')
    if (kind !== 'sign-in' && password === undefined) throw new Problem('bad_request', 'The field "password" is missing.')
    const passwordHash = password === undefined ? undefined : await this.#signIn.hash({ ...client, isKnown: true }, password)
    return this.#signIn.transaction(async (tx) => {
      const link = await useLink(tx, hashOf(given.token))
      if (!link) throw noSuchLink()
      if (link.kind === 'sign-in') return this.#signInPersonOf(tx, link, passwordHash, client)
      const person = {
        email: email ?? '',
        name: given.name,
        accountId: link.accountId ?? undefined,
        passwordHash: passwordHash ?? '',
        isSelfRegistered: false,
      }
      return this.#enterAs(tx, person, client)
    })
  }

  async #signInPersonOf(tx: Sql, { accountId }: LinkRow, passwordHash: string | undefined, client: Client): Promise<Entered> {
    const user = await findPersonOf(tx, accountId ?? '')
    if (!user) throw noSuchLink()
    // Decision 45: a sign-in link is for people who have lost what they sign in with. Without a code, they could not turn off the
    // second factor themselves, so the link does.
    await endTwoFactor(tx, user.id)
    if (passwordHash !== undefined) await this.#signIn.replacePassword(tx, client, user.id, passwordHash)
    return { user, cookies: await this.#signIn.start(tx, client, user.id, 'link') }
  }

  async #enterAs(tx: Sql, person: NewPerson, client: Client): Promise<Entered> {
    try {
      return await this.#signIn.enterAs(tx, client, person)
    } catch (error) {
      // Two links for one account were used at the same time.
      if ((error as { constraint?: string }).constraint === 'people_account_id_key') throw noSuchLink()
      throw error
    }
  }

  async #hasAccount(email: string | undefined): Promise<boolean> {
    return email !== undefined && (await findAccountOf(this.#sql, email)) !== undefined
  }

  async #find(token: string): Promise<LinkRow> {
    const link = await findLink(this.#sql, hashOf(token))
    if (!link || (link.kind === 'invitation' && this.#config.registration === 'off')) throw noSuchLink()
    return link
  }

  async #toAccount(accountId: string, seconds: number, actor: string): Promise<NewLink> {
    const { token, url } = this.#newToken()
    const isAccount = isId('acct', accountId)
    const link = isAccount ? await insertAccountLink(this.#sql, { hash: hashOf(token), accountId, seconds, actor }) : undefined
    if (!link) throw noSuchAccount()
    return { url, ...link }
  }

  #newToken(): { token: string; url: string } {
    const token = randomBytes(32).toString('base64url')
    return { token, url: `${this.#config.publicUrl}/dashboard/link#${token}` }
  }
}
