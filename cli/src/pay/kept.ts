import { existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { usage } from '../failure.ts'
import { readDocument, SecretFile } from '../files.ts'
import { harmless } from '../terminal.ts'

/**
 * What is paid for is on the disk before it is paid: first the challenge, then with the credential. Whenever we are killed, the file is
 * enough to ask the node what became of the payment, and to present what it bought.
 */
export type Purchase = {
  /** Where it was asked for, after all redirections. */
  url: string
  /** The node that was told to pay: no other can say what became of it. */
  nodeUrl: string
  challenge: string
  invoice: string
  paymentHash: string
  amountSat: number
  credential?: string
}

export class Kept {
  readonly #file: SecretFile
  /** Named by the user: kept when all is well, to be used again. */
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

  /** Of an earlier run. A credential is for one server, and no other is shown it. */
  static open(path: string, origin: string): Kept | undefined {
    const document = readDocument(path)
    if (!document) return undefined
    const { url, challenge, invoice, paymentHash, credential } = document
    if (
      [url, challenge, invoice, paymentHash].some((one) => typeof one !== 'string') ||
      (credential !== undefined && !isHeader(credential))
    ) {
      throw usage(`${harmless(path)} exists already, and is not a credential that boltyard kept. It is not overwritten.`)
    }
    if (new URL(String(url)).origin !== origin)
      throw usage(`The credential in ${harmless(path)} was paid to another server.`, 'Name another file for this one.')
    return new Kept(SecretFile.reopen(path), document as Purchase, true)
  }

  static create(path: string | undefined, purchase: Purchase): Kept {
    const place = path ?? join(stateDirectory(), `${purchase.paymentHash}.json`)
    // Of our own naming: an earlier run was offered this very invoice, and was cut off. The node pays it once.
    const isLeft = path === undefined && existsSync(place)
    const file = isLeft ? SecretFile.reopen(place) : SecretFile.create(place, 'the credential')
    file.write(purchase)
    return new Kept(file, purchase, path !== undefined)
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
  const directory = join(process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'boltyard', 'paid')
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch {
    throw usage(`What is paid for cannot be kept in ${directory}. Nothing was paid.`, 'Name a file for it: --credential-file')
  }
  return directory
}
