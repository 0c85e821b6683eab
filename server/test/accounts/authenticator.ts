import { base32, codeOf, stepAt } from '../../src/accounts/people/totp.ts'
import type { Answer } from '../support/server.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** An authenticator app. Like a real one, it gets the secret as text in base 32. */
export class Authenticator {
  readonly #secret: Buffer

  constructor(secret: string) {
    const bits = [...secret].map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, '0')).join('')
    this.#secret = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
    if (base32(this.#secret) !== secret) throw new Error('not base 32')
  }

  /** The code that the app shows now, or some steps of 30 seconds from now. */
  code(stepsFromNow = 0): string {
    return codeOf(this.#secret, stepAt(Date.now() / 1000) + stepsFromNow)
  }
}

type Poster = { post: (path: string, json?: unknown) => Promise<Answer> }

/** Turns two-factor sign-in on with the requests that the dashboard sends. */
export async function turnOn(
  browser: Poster,
  password: string,
): Promise<{ app: Authenticator; firstCode: string; recoveryCodes: string[] }> {
  const begun = await browser.post('/security/two-factor', { password })
  if (begun.status !== 200) throw new Error(begun.text)
  const app = new Authenticator(begun.json().secret)
  const firstCode = app.code()
  const confirmed = await browser.post('/security/two-factor/confirm', { code: firstCode })
  if (confirmed.status !== 200) throw new Error(confirmed.text)
  return { app, firstCode, recoveryCodes: confirmed.json().recoveryCodes }
}
