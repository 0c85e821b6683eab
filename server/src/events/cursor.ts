import { createHash } from 'node:crypto'
import { badCursor } from '../problems.ts'

const ACCOUNT_BYTES = 8
/** 16 bytes in base64url. */
const LENGTH = 22

/**
 * The place of a reader in an account's feed: after the event with this number. Opaque to the reader, and valid for one account
 * only.
 */
export function cursorOf(accountId: string, seq: number): string {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(seq))
  return Buffer.concat([bytes, markOf(accountId)]).toString('base64url')
}

/** Throws if the text is not a cursor of this account. */
export function seqIn(accountId: string, cursor: string): number {
  const bytes = Buffer.from(cursor.length === LENGTH ? cursor : '', 'base64url')
  if (bytes.length !== 8 + ACCOUNT_BYTES || bytes.toString('base64url') !== cursor) throw badCursor()
  if (!bytes.subarray(8).equals(markOf(accountId))) throw badCursor()
  const seq = bytes.readBigUInt64BE()
  if (seq > BigInt(Number.MAX_SAFE_INTEGER)) throw badCursor()
  return Number(seq)
}

const markOf = (accountId: string): Buffer =>
  createHash('sha256').update(`events of ${accountId}`).digest().subarray(0, ACCOUNT_BYTES)
