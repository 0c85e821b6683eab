import { createHmac, timingSafeEqual } from 'node:crypto'

/** RFC 6238 with what every authenticator app supports: SHA-1, 6 digits, 30 seconds. Decision 45 says why this is not a library. */

const STEP_SECONDS = 30
const DIGITS = 6
/** Steps before and after the current one whose codes are accepted: the phone's clock may differ, and typing takes a while. */
const WINDOW = 1
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export const stepAt = (unixSeconds: number): number => Math.floor(unixSeconds / STEP_SECONDS)

/** HOTP (RFC 4226) with the step as its counter. */
export function codeOf(secret: Buffer, step: number, digits = DIGITS): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 15
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** The step that the code belongs to, if it is near enough and after the last one that was used. */
export function stepOfCode(secret: Buffer, code: string, now: { step: number; lastStep: number }): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined
  let found: number | undefined
  for (let step = now.step + WINDOW; step >= now.step - WINDOW; step--) {
    const isEqual = timingSafeEqual(Buffer.from(codeOf(secret, step)), Buffer.from(code))
    if (isEqual && step > now.lastStep) found = step
  }
  return found
}

/** RFC 4648 without padding. All lengths used here are multiples of five bytes, so no bits are left over. */
export function base32(bytes: Buffer): string {
  let text = ''
  for (let bit = 0; bit < bytes.length * 8; bit += 5) {
    const pair = ((bytes[bit >> 3] ?? 0) << 8) | (bytes[(bit >> 3) + 1] ?? 0)
    text += BASE32[(pair >> (11 - (bit & 7))) & 31]
  }
  return text
}

/** What the QR code contains. The format comes from Google Authenticator; other authenticator apps read it too. */
export function keyUri(secret: Buffer, email: string): string {
  const parameters = new URLSearchParams({
    secret: base32(secret),
    issuer: 'Boltyard',
    algorithm: 'SHA1',
    digits: String(DIGITS),
    period: String(STEP_SECONDS),
  })
  return `otpauth://totp/Boltyard:${encodeURIComponent(email)}?${parameters}`
}
