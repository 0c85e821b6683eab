import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PREFIX = 'byk_'
const RANDOM_LENGTH = 30
const CHECK_LENGTH = 6
const PATTERN = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECK_LENGTH}}$`)

/** 30 random characters and a 6-character checksum, so that scanners recognize a leaked key and malformed keys never reach the store. */
export function newKey(): string {
  let text = PREFIX
  for (let index = 0; index < RANDOM_LENGTH; index++) text += BASE62[randomInt(62)]
  return text + checkOf(text)
}

export function isWellFormedKey(text: string): boolean {
  return PATTERN.test(text) && text.slice(-CHECK_LENGTH) === checkOf(text.slice(0, -CHECK_LENGTH))
}

/** Stored with the key's first 8 characters. The other random bits, over 150, cannot be guessed, so a plain hash is enough. */
export function keyHash(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

function checkOf(text: string): string {
  let rest = crc32(text)
  let check = ''
  for (; rest > 0; rest = Math.floor(rest / 62)) check = BASE62[rest % 62] + check
  return check.padStart(CHECK_LENGTH, '0')
}
