import { createHash, randomBytes } from 'node:crypto'
import { derivedKey, type MasterKey, open, seal } from '../../platform/secrets.ts'
import { Problem } from '../../problems.ts'
import type { Database, Sql } from '../../store/db.ts'
import {
  beginTwoFactor,
  claimRecoveryCode,
  claimStep,
  confirmTwoFactor,
  endTwoFactor,
  findTwoFactor,
  logRecoveryCodes,
  replaceRecoveryCodes,
  replaceTotp,
  type SealedTotp,
  twoFactorUnder,
} from '../../store/people/two-factor.ts'
import { base32, keyUri, stepAt, stepOfCode } from './totp.ts'

const PURPOSE = 'two-factor secret'
/** 160 bits, as RFC 4226 recommends. */
const SECRET_BYTES = 20
const RECOVERY_CODES = 10
/** 80 bits are too many to guess, so a plain hash is enough. Unlike a sealed code, it stays valid when the master key changes. */
const RECOVERY_BYTES = 10
const RESEALED_AT_ONCE = 100

export type TwoFactorStatus = { isOn: boolean; since: number | null; recoveryCodesLeft: number }
/** The second factor's verdict on a sign-in whose first factor was correct. */
export type Verdict = 'passed' | 'code required' | 'wrong code' | 'unverified passkey'

const contextOf = (personId: string): string => `${personId} two-factor secret`
/** Includes the id of the person, so that equal codes of two people have different hashes. */
const hashOf = (personId: string, code: string): Buffer => createHash('sha256').update(`${personId} ${code}`).digest()
/** People type codes with spaces and hyphens, in lower case. */
const normalized = (code: string): string => code.replace(/[\s-]/g, '').toUpperCase()

type Options = { sql: Database; masterKeys: readonly [MasterKey, ...MasterKey[]] }

/** C87: codes from an authenticator app after the password, and recovery codes for a lost phone. Each code can be used once. */
export class TwoFactor {
  readonly #sql: Database
  readonly #masterKeys: Options['masterKeys']

  constructor({ sql, masterKeys }: Options) {
    this.#sql = sql
    this.#masterKeys = masterKeys
  }

  async status(personId: string): Promise<TwoFactorStatus> {
    const row = await findTwoFactor(this.#sql, personId)
    if (!row?.isOn) return { isOn: false, since: null, recoveryCodesLeft: 0 }
    return { isOn: true, since: row.confirmedAt, recoveryCodesLeft: row.recoveryCodesLeft }
  }

  async judge(personId: string, how: { code: string | undefined; isPasskey: boolean }): Promise<Verdict> {
    const { isOn } = await this.status(personId)
    if (!isOn) return 'passed'
    if (how.isPasskey) return 'unverified passkey'
    if (how.code === undefined) return 'code required'
    return (await this.use(this.#sql, personId, how.code)) ? 'passed' : 'wrong code'
  }

  /** Accepts a code from the app, or a recovery code. True at most once per code. */
  async use(sql: Sql, personId: string, given: string): Promise<boolean> {
    const code = normalized(given)
    if (!/^\d{6}$/.test(code)) return claimRecoveryCode(sql, personId, hashOf(personId, code))
    const row = await findTwoFactor(sql, personId)
    if (!row?.isOn) return false
    const now = { step: stepAt(row.nowSeconds), lastStep: row.lastStep }
    const step = stepOfCode(this.#open(personId, row), code, now)
    return step !== undefined && (await claimStep(sql, personId, row.secret, step))
  }

  /** Sign-ins require no code until `confirm`, so a person who closes the page now is not locked out. */
  async begin(personId: string, email: string): Promise<{ secret: string; uri: string }> {
    const secret = randomBytes(SECRET_BYTES)
    if (!(await beginTwoFactor(this.#sql, personId, this.#seal(personId, secret))))
      throw new Problem('bad_request', 'Two-factor sign-in is already on. Turn it off first.')
    return { secret: base32(secret), uri: keyUri(secret, email) }
  }

  /** Undefined: wrong code. The code that confirms counts as used. */
  async confirm(personId: string, given: string): Promise<string[] | undefined> {
    const row = await findTwoFactor(this.#sql, personId)
    if (!row || row.isOn) throw notBegun()
    const now = { step: stepAt(row.nowSeconds), lastStep: row.lastStep }
    const step = stepOfCode(this.#open(personId, row), normalized(given), now)
    if (step === undefined) return undefined
    return this.#sql.begin(async (tx) => {
      if (!(await confirmTwoFactor(tx, personId, row.secret, step))) throw notBegun()
      return newRecoveryCodes(tx, personId)
    })
  }

  /** Undefined: wrong code. */
  async replaceRecoveryCodes(personId: string, code: string): Promise<string[] | undefined> {
    return this.#sql.begin(async (tx) => {
      if (!(await this.use(tx, personId, code))) return undefined
      await logRecoveryCodes(tx, personId)
      return newRecoveryCodes(tx, personId)
    })
  }

  async turnOff(personId: string, code: string): Promise<boolean> {
    return this.#sql.begin(async (tx) => (await this.use(tx, personId, code)) && endTwoFactor(tx, personId))
  }

  #seal(personId: string, secret: Buffer): SealedTotp {
    return sealTotp(this.#masterKeys[0], personId, secret)
  }

  #open(personId: string, sealed: SealedTotp): Buffer {
    return openTotp(this.#masterKeys, personId, sealed)
  }
}

const notBegun = (): Problem =>
  new Problem('bad_request', 'The set-up was not started, was started again elsewhere, or took too long. Start again.')

async function newRecoveryCodes(tx: Sql, personId: string): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, () => base32(randomBytes(RECOVERY_BYTES)))
  await replaceRecoveryCodes(
    tx,
    personId,
    codes.map((code) => hashOf(personId, code)),
  )
  return codes.map((code) => (code.match(/.{4}/g) ?? []).join('-'))
}

function sealTotp(master: MasterKey, personId: string, secret: Buffer): SealedTotp {
  return { keyId: master.id, secret: seal(derivedKey(master, PURPOSE), contextOf(personId), secret) }
}

function openTotp(masterKeys: readonly MasterKey[], personId: string, { keyId, secret }: SealedTotp): Buffer {
  const master = masterKeys.find(({ id }) => id === keyId)
  if (!master) throw new Error('a two-factor secret is sealed with an unknown master key; set MASTER_KEY_PREVIOUS')
  return open(derivedKey(master, PURPOSE), contextOf(personId), secret)
}

/** Reseals secrets that are still sealed with the previous master key. Can be interrupted at any row and run again. */
export async function resealTwoFactor(sql: Sql, master: MasterKey, previous: MasterKey): Promise<number> {
  let count = 0
  for (;;) {
    const rows = await twoFactorUnder(sql, previous.id, RESEALED_AT_ONCE)
    for (const { personId, secret } of rows) {
      const before = { keyId: previous.id, secret }
      await replaceTotp(sql, personId, before, sealTotp(master, personId, openTotp([previous], personId, before)))
      count++
    }
    if (rows.length < RESEALED_AT_ONCE) return count
  }
}
