import { fromLocalInput } from '../../text/format.ts'
import type { Scope } from './scopes.ts'

const DAY_SECONDS = 86_400
/** Days until the key expires, or one of the other choices in the dialog. */
export type Expiry = 'keep' | 'never' | '7' | '30' | '90' | '365' | 'date'
export type Fields = { name: string; scopes: Scope[]; expiry: Expiry; date: string }

/** Undefined: the expiry stays as it is. */
export function expiresAtOf({ expiry, date }: Fields): number | null | undefined {
  if (expiry === 'keep') return undefined
  if (expiry === 'never') return null
  return Math.floor(expiry === 'date' ? fromLocalInput(date) : Date.now() / 1000 + Number(expiry) * DAY_SECONDS)
}

/** Only what the person changed: saving a new name must not restore a permission that was removed elsewhere in the meantime. */
export function changeOf(before: Fields, after: Fields): { name?: string; scopes?: Scope[]; expiresAt?: number | null } {
  const name = after.name.trim()
  const isSame = before.scopes.length === after.scopes.length && before.scopes.every((scope) => after.scopes.includes(scope))
  const expiresAt = before.expiry === after.expiry && after.expiry !== 'date' ? undefined : expiresAtOf(after)
  return {
    ...(name === before.name ? {} : { name }),
    ...(isSame ? {} : { scopes: after.scopes }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  }
}
