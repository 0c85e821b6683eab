import { jsonObjectIn } from '../../../protocol/src/bytes.ts'
import { Failure } from '../failure.ts'
import type { LiveOffer } from './dialects/offer.ts'
import type { Findings, Note } from './findings.ts'
import { checkExposed, checkPaidCaching, ORIGIN } from './headers.ts'
import type { CheckedOperation } from './operation-check.ts'
import type { Answer, Visit } from './visit.ts'
import type { Visits } from './visits.ts'

/** Pays an invoice with play money and returns the preimage. */
export type SandboxWallet = (invoice: string) => Promise<string>
export type Purchase = { operation: string; protocol: LiveOffer['protocol']; amountSat: number; deliveries: number }

const RECEIPTS: Partial<Record<LiveOffer['protocol'], string>> = { mpp: 'payment-receipt', x402: 'payment-response' }
const MAX_ATTEMPTS = 5
const MAX_PAUSE_MS = 5_000

const isDelivered = ({ status }: Answer): boolean => status >= 200 && status < 300

export class Purchases {
  readonly list: Purchase[] = []
  readonly #visits: Visits
  readonly #findings: Findings
  readonly #wallet: SandboxWallet
  readonly #pause: (ms: number) => Promise<void>

  constructor(visits: Visits, findings: Findings, wallet: SandboxWallet, pause: (ms: number) => Promise<void>) {
    this.#visits = visits
    this.#findings = findings
    this.#wallet = wallet
    this.#pause = pause
  }

  /** Buys with every protocol that is offered. `dearest` is something that costs more. */
  async buy({ operation }: CheckedOperation, dearest: CheckedOperation | undefined): Promise<void> {
    const { name, method, url } = operation
    const note = this.#findings.of(name)
    const what = { method, url }
    for (const offer of this.#visits.offersOf(await this.#visits.send(what), what, note)) {
      if (offer.invoice.network !== 'regtest') {
        this.#findings.skip(
          name,
          `Not paid over ${offer.protocol}: its invoice is for ${offer.invoice.network}, not for a sandbox.`,
        )
        continue
      }
      const preimage = await this.#pay(offer, name)
      if (preimage === undefined) continue
      const credential = offer.present(preimage)
      if (dearest) await this.#tryElsewhere(credential, offer, dearest, note)
      await this.#present(what, credential, offer, name, note)
    }
  }

  /** Undefined if the wallet refuses: the invoice may be from another sandbox. */
  async #pay({ invoiceText, protocol }: LiveOffer, name: string): Promise<string | undefined> {
    try {
      return await this.#wallet(invoiceText)
    } catch (error) {
      if (!(error instanceof Failure) || !['usage', 'conflict', 'other'].includes(error.exit)) throw error
      this.#findings.skip(name, `Not paid over ${protocol}: ${error.message}`)
      return undefined
    }
  }

  async #tryElsewhere(
    credential: Record<string, string>,
    { protocol }: LiveOffer,
    dearest: CheckedOperation,
    note: Note,
  ): Promise<void> {
    if (!dearest.offers.some((one) => one.protocol === protocol)) return
    const { method, url, name } = dearest.operation
    if (isDelivered(await this.#visits.send({ method, url, headers: credential })))
      note('cheap-opens-dear', `${protocol}: the credential also opened ${name}, which costs more`)
  }

  /** Sends two requests at the same time and later another one: a credential for one delivery must succeed exactly once. */
  async #present(what: Visit, credential: Record<string, string>, offer: LiveOffer, name: string, note: Note): Promise<void> {
    const visit: Visit = { ...what, headers: { ...credential, origin: ORIGIN }, readsBody: true }
    const head = await this.#visits.send({ ...visit, method: 'HEAD' })
    const answers = await Promise.all([this.#visits.send(visit), this.#visits.send(visit)])
    for (let attempt = 1; attempt < MAX_ATTEMPTS && !answers.some(isDelivered); attempt++) {
      const { status, header } = answers.at(-1) as Answer
      if (status !== 503 && status !== 409) break
      await this.#pause(Math.min(MAX_PAUSE_MS, (Number(header('retry-after')) || 1) * 1000))
      answers.push(await this.#visits.send(visit))
    }
    const { protocol, amountMsat } = offer
    const delivered = answers.find(isDelivered)
    if (!delivered && isDelivered(head))
      note('head-uses-up', `${protocol}: HTTP ${answers[0]?.status} after HEAD with the same credential`)
    else if (!delivered) {
      note('paid-not-delivered', `${protocol}: HTTP ${answers.map(({ status }) => status).join(', ')} after the payment`)
    } else {
      answers.push(await this.#visits.send(visit))
      checkPaidCaching(delivered, note)
      checkReceipt(delivered, offer, note)
    }
    const deliveries = answers.filter(isDelivered).length
    // An L402 credential may stay good until it expires.
    if (deliveries > 1 && protocol !== 'l402') note('delivered-again', `${protocol}: ${deliveries} deliveries for one payment`)
    this.list.push({ operation: name, protocol, amountSat: amountMsat / 1000, deliveries })
  }
}

function checkReceipt(answer: Answer, { protocol, invoice, challengeId }: LiveOffer, note: Note): void {
  const name = RECEIPTS[protocol]
  if (name === undefined) return
  const text = answer.header(name)
  if (text === '') return note('receipt-missing', `${protocol}: no ${name}`)
  checkExposed(answer, [name], note)
  const receipt = jsonObjectIn(text)
  const { paymentHash } = invoice
  const isRight =
    protocol === 'x402'
      ? receipt?.success === true && receipt.transaction === paymentHash
      : receipt?.status === 'success' &&
        receipt.method === 'lightning' &&
        receipt.reference === paymentHash &&
        (receipt.challengeId ?? challengeId) === challengeId
  // Not quoted: a wrong receipt may contain the preimage.
  if (!isRight) note('receipt-wrong', `${protocol}: ${receipt ? 'a receipt for something else' : 'not base64 of a JSON object'}`)
}
