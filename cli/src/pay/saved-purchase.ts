import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { usage } from '../failure.ts'
import { readDocument, SecretFile, statePath } from '../files.ts'
import { sanitize } from '../terminal.ts'

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
  credential?: string
}

export class SavedPurchase {
  readonly #file: SecretFile
  /** True if the user named the file. It is then kept after success and can be used again. */
  readonly isWanted: boolean
  purchase: Purchase

  private constructor(file: SecretFile, purchase: Purchase, isWanted: boolean) {
    this.#file = file
    this.purchase = purchase
    this.isWanted = isWanted
  }

  get path(): string {
    return this.#file.path
  }

  /** Reads the purchase of an earlier run. Its credential must not be sent to any other server. */
  static open(path: string, origin: string): SavedPurchase | undefined {
    const document = readDocument(path)
    if (!document) return undefined
    const { url, challenge, invoice, paymentHash, credential } = document
    if (
      [url, challenge, invoice, paymentHash].some((one) => typeof one !== 'string') ||
      (credential !== undefined && !isHeader(credential))
    ) {
      throw usage(`${sanitize(path)} already exists and is not a credential file of boltyard. It will not be overwritten.`)
    }
    if (new URL(String(url)).origin !== origin)
      throw usage(`The credential in ${sanitize(path)} is for another server.`, 'Use another file for this server.')
    return new SavedPurchase(SecretFile.reopen(path), document as Purchase, true)
  }

  static create(path: string | undefined, purchase: Purchase): SavedPurchase {
    const place = path ?? join(stateDirectory(), `${purchase.paymentHash}.json`)
    // This name contains the payment hash, so an earlier run got the same invoice and was interrupted. The node pays an invoice only once.
    const isLeft = path === undefined && existsSync(place)
    const file = isLeft ? SecretFile.reopen(place) : SecretFile.create(place, 'the credential')
    file.write(purchase)
    return new SavedPurchase(file, purchase, path !== undefined)
  }

  complete(credential: string): void {
    this.purchase = { ...this.purchase, credential }
    this.#file.write(this.purchase)
  }

  replace(purchase: Purchase): void {
    this.purchase = purchase
    this.#file.write(purchase)
  }

  remove(): void {
    this.#file.remove()
  }
}

const isHeader = (value: unknown): value is string => typeof value === 'string' && /^[\x20-\x7e]{1,16384}$/.test(value)

function stateDirectory(): string {
  const directory = statePath('paid')
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch {
    throw usage(
      `The credential cannot be stored in ${directory}. Nothing was paid.`,
      'Name a file for it with --credential-file.',
    )
  }
  return directory
}
