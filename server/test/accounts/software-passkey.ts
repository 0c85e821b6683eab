import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import type { Browser } from '../support/browser.ts'
import type { Answer } from '../support/server.ts'

const PRESENT_AND_VERIFIED = 0x05
const ATTESTED = 0x40

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest()
/** The few forms of CBOR (RFC 8949) that a registration needs. */
const cborBytes = (data: Buffer): Buffer => Buffer.concat([Buffer.from([0x58, data.length]), data])
const cborText = (text: string): Buffer => Buffer.concat([Buffer.from([0x60 + text.length]), Buffer.from(text)])

/** A passkey without a device, as a thief could write it in a script. It always claims that it verified its user. */
export class SoftwarePasskey {
  readonly #id = randomBytes(16)
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })

  async register(browser: Browser, challenge: string): Promise<Answer> {
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' })
    const key = Buffer.concat([
      Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
      cborBytes(Buffer.from(x, 'base64url')),
      Buffer.from([0x22]),
      cborBytes(Buffer.from(y, 'base64url')),
    ])
    const credential = Buffer.concat([Buffer.alloc(16), Buffer.from([0, this.#id.length]), this.#id, key])
    const attestation = Buffer.concat([
      Buffer.from([0xa3]),
      ...[cborText('fmt'), cborText('none'), cborText('attStmt'), Buffer.from([0xa0]), cborText('authData')],
      cborBytes(Buffer.concat([this.#data(PRESENT_AND_VERIFIED | ATTESTED), credential])),
    ])
    const response = {
      clientDataJSON: this.#clientData('webauthn.create', challenge, browser).toString('base64url'),
      attestationObject: attestation.toString('base64url'),
    }
    return browser.post('/auth/passkey/verify-registration', { response: this.#answer(response), name: 'Software' })
  }

  /** `signed`: what is signed instead of the browser's own challenge. */
  async signIn(browser: Browser, signed?: string): Promise<Answer> {
    const options = (await browser.get('/auth/passkey/generate-authenticate-options')).json()
    const challenge = signed ?? options.challenge
    const clientData = this.#clientData('webauthn.get', challenge, browser)
    const data = this.#data(PRESENT_AND_VERIFIED)
    const response = {
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: sign('sha256', Buffer.concat([data, sha256(clientData)]), this.#keys.privateKey).toString('base64url'),
    }
    return browser.post('/auth/passkey/verify-authentication', { response: this.#answer(response) })
  }

  #data(flags: number): Buffer {
    return Buffer.concat([sha256('localhost'), Buffer.from([flags]), Buffer.alloc(4)])
  }

  #clientData(type: string, challenge: string, { origin }: Browser): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }))
  }

  #answer(response: unknown) {
    const id = this.#id.toString('base64url')
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response }
  }
}
