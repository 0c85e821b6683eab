import { mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { CredentialHeader } from '../../../protocol/src/offers.ts'
import type { Credential } from '../../../sdk/src/buy/request.ts'
import { usage } from '../failure.ts'
import { readDocument, SecretFile, statePath } from '../files.ts'
import { sanitize, shellWord } from '../terminal.ts'

/**
 * A purchase is on disk before it is paid: first the challenge, later also the credential. Whenever the process is killed, the file is
 * enough to ask the node about the payment and to present the credential.
 */
export type Purchase = {
  /** The URL after all redirects. */
  url: string
  /** The node that was asked to pay. Only this node knows what happened to the payment. */
  nodeUrl: string
  challenge: string
  invoice: string
  paymentHash: string
  amountSat: number
  /** Where the credential goes. Files of earlier versions lack it: they all used Authorization. */
  header?: CredentialHeader
  credential?: string
}

export class SavedPurchase {
  #file: SecretFile
  /** True if the user named the file. It is then kept after success and can be used again. */
  isWanted: boolean
  /** True for the purchase of an earlier run, which the node may have paid or may still pay, whatever happens in this run. */
  isResumed: boolean
  purchase: Purchase

  private constructor(file: SecretFile, purchase: Purchase, { isWanted, isResumed }: { isWanted: boolean; isResumed: boolean }) {
    this.#file = file
    this.purchase = purchase
    this.isWanted = isWanted
    this.isResumed = isResumed
  }

  get path(): string {
    return this.#file.path
  }

  /** Whether the file is in this program's own directory, so that no other program relies on it. */
  get isOurs(): boolean {
    return resolve(dirname(this.path)) === resolve(statePath('paid'))
  }

  /** Reads the purchase of an earlier run. Its credential must not be sent to any other server. */
  static open(path: string, origin: string, isWanted = true): SavedPurchase | undefined {
    const document = readDocument(path)
    if (!document) return undefined
    const { url, challenge, invoice, paymentHash, header = 'authorization', credential } = document
    if (
      [url, challenge, invoice, paymentHash].some((one) => typeof one !== 'string') ||
      !HEADERS.has(header) ||
      (credential !== undefined && !isHeader(credential))
    ) {
      throw usage(`${sanitize(path)} already exists and is not a credential file of boltyard. It will not be overwritten.`)
    }
    if (new URL(String(url)).origin !== origin)
      throw usage(`The credential in ${sanitize(path)} is for another server.`, 'Use another file for this server.')
    return new SavedPurchase(SecretFile.reopen(path), document as Purchase, { isWanted, isResumed: true })
  }

  /** If an earlier run got the same invoice and left its file, returns that purchase: it may be paid, and even have its credential. */
  static create(path: string | undefined, purchase: Purchase): SavedPurchase {
    if (path === undefined) {
      const place = join(stateDirectory(' Nothing was paid.'), `${purchase.paymentHash}.json`)
      const left = SavedPurchase.open(place, new URL(purchase.url).origin, false)
      if (!left) return SavedPurchase.#created(place, purchase, false)
      // The earlier run may have paid the invoice in the file, so the file must not be replaced.
      if (left.purchase.invoice !== purchase.invoice)
        throw usage(
          `The server sent a different invoice with the payment hash of the purchase in ${sanitize(place)}. This run paid nothing.`,
          `To continue that purchase: --credential-file ${shellWord(place)}`,
        )
      return left
    }
    return SavedPurchase.#created(path, purchase, true)
  }

  static #created(path: string, purchase: Purchase, isWanted: boolean): SavedPurchase {
    const file = SecretFile.create(path, 'the credential', purchase)
    return new SavedPurchase(file, purchase, { isWanted, isResumed: false })
  }

  get credential(): Credential {
    const { header = 'authorization', credential = '' } = this.purchase
    return { header, credential }
  }

  /** Identifies the offer within the challenge. */
  get offer(): { challenge: string; invoice: string; header: CredentialHeader } {
    const { challenge, invoice, header = 'authorization' } = this.purchase
    return { challenge, invoice, header }
  }

  /** Whether the file has this purchase. Another run may have replaced it, or someone may have removed the file. */
  get isInFile(): boolean {
    try {
      return readDocument(this.path)?.paymentHash === this.purchase.paymentHash
    } catch {
      return false
    }
  }

  /**
   * Stores the header again, because the server may have made the offer again with the same invoice but another header. If
   * another run has taken the file for its own purchase, this one is kept in the state directory, like one without a named file.
   */
  async complete(header: CredentialHeader, credential: string): Promise<void> {
    this.purchase = { ...this.purchase, header, credential }
    const { paymentHash } = this.purchase
    try {
      await this.#file.replace(this.purchase, () => {
        const { paymentHash: current = paymentHash } = readDocument(this.path) ?? {}
        if (current !== paymentHash) throw new OtherPurchase()
      })
    } catch (error) {
      if (!(error instanceof OtherPurchase)) throw error
      this.isWanted = false
      this.#file = SecretFile.create(join(stateDirectory(), `${paymentHash}.json`), 'the credential', this.purchase)
    }
  }

  /** Only for a purchase that cannot be paid any more. Replaces nothing if `mayReplace`, which is called right before, throws. */
  async replace(purchase: Purchase, mayReplace: () => Promise<void>): Promise<void> {
    await this.#file.replace(purchase, mayReplace)
    this.purchase = purchase
    this.isResumed = false
  }

  remove(): void {
    this.#file.remove()
  }

  /** Does nothing if the file has another purchase by now, because another run assumed that this one is dead. */
  removeUsedUp(): void {
    if (readDocument(this.path)?.paymentHash === this.purchase.paymentHash) this.remove()
  }
}

class OtherPurchase extends Error {}

const HEADERS = new Set<unknown>(['authorization', 'payment-authorization', 'payment-signature'] satisfies CredentialHeader[])
const isHeader = (value: unknown): value is string => typeof value === 'string' && /^[\x20-\x7e]{1,16384}$/.test(value)

function stateDirectory(outcome = ''): string {
  const directory = statePath('paid')
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch {
    throw usage(`The credential cannot be stored in ${directory}.${outcome}`, 'Name a file for it with --credential-file.')
  }
  return directory
}
