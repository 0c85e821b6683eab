import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { derivedKey, type MasterKey } from '../../platform/secrets.ts'

/** The longest lifetime that browsers allow for a cookie. */
const LIFETIME_SECONDS = 400 * 24 * 3600
const VALUE = /^([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/

/**
 * Marks a browser in which someone has signed in with this email before. It grants no access: it only gives the browser its own
 * failure count (C44), so that strangers who guess passwords cannot lock out the owner. The cookie does not contain the email,
 * and is valid only for that email.
 */
export class DeviceCookie {
  readonly #secret: Buffer
  readonly #isHttps: boolean

  constructor({ master, publicUrl }: { master: MasterKey; publicUrl: string }) {
    this.#secret = derivedKey(master, 'device cookie')
    this.#isHttps = new URL(publicUrl).protocol === 'https:'
  }

  get #name(): string {
    return `${this.#isHttps ? '__Host-' : ''}boltyard.device`
  }

  /** The browser's id, if someone has signed in there with this email. */
  deviceOf(cookies: string | undefined, email: string): string | undefined {
    for (const pair of cookies?.split(';') ?? []) {
      const [name, value = ''] = pair.trim().split('=')
      const [, id, mac] = (name === this.#name && VALUE.exec(value)) || []
      if (id && mac && timingSafeEqual(Buffer.from(mac, 'base64url'), this.#macOf(id, email))) return id
    }
    return undefined
  }

  /** Set after a sign-in. A known browser keeps its id and its count. */
  headerFor(cookies: string | undefined, email: string): string {
    const id = this.deviceOf(cookies, email) ?? randomBytes(16).toString('base64url')
    const value = `${id}.${this.#macOf(id, email).toString('base64url')}`
    const attributes = `Max-Age=${LIFETIME_SECONDS}; Path=/; HttpOnly; SameSite=Lax${this.#isHttps ? '; Secure' : ''}`
    return `${this.#name}=${value}; ${attributes}`
  }

  #macOf(id: string, email: string): Buffer {
    return createHmac('sha256', this.#secret).update(`${id} ${email}`).digest()
  }
}
