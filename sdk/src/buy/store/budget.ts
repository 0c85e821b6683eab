import { jsonIn } from '../../json.ts'
import { PurchaseError } from '../errors.ts'
import type { PurchaseStore } from './store.ts'

const DAY_MS = 86_400_000
const PREFIX = 'spent.'

type Spending = { amountSat: number; atMs: number; expiresAtMs: number }
type Price = { paymentHash: string; amountSat: number; expiresAtMs: number }

/**
 * What was spent in the last 24 hours, one entry per payment. An entry is written before the others are counted, so concurrent
 * purchases always count each other: they may all be refused, but never exceed the budget together. A crash leaves the entry,
 * because the payment may have been made.
 */
export class Budget {
  readonly #store: PurchaseStore
  readonly #maxSatPerDay: number
  /** Purchases of one process wait for each other, so that they are not all refused. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(store: PurchaseStore, maxSatPerDay: number) {
    this.#store = store
    this.#maxSatPerDay = maxSatPerDay
  }

  /** False if an invoice with this payment hash was bought before. Throws if the price would exceed the budget. */
  reserve(price: Price): Promise<boolean> {
    return this.#inTurn(async () => {
      const name = PREFIX + price.paymentHash
      if (!(await this.#store.add(name, textOf(price)))) return false
      await this.#check(name, price).catch(async (error) => {
        await this.#store.delete(name)
        throw error
      })
      return true
    })
  }

  /** For a payment that is resumed. It counts as spent now, because it may be made now. */
  renew(price: Price): Promise<void> {
    return this.#inTurn(async () => {
      const name = PREFIX + price.paymentHash
      const before = await this.#store.get(name)
      await this.#store.set(name, textOf(price))
      await this.#check(name, price).catch(async (error) => {
        await (before === undefined ? this.#store.delete(name) : this.#store.set(name, before))
        throw error
      })
    })
  }

  /** Adds the fee, which is only known after the payment. */
  async addFee(paymentHash: string, feeSat: number): Promise<void> {
    const name = PREFIX + paymentHash
    const spending = spendingIn(name, await this.#store.get(name))
    if (spending) await this.#store.set(name, JSON.stringify({ ...spending, amountSat: spending.amountSat + feeSat }))
  }

  /** Call it only if the payment was certainly not made and cannot be made any more. */
  release(paymentHash: string): Promise<void> {
    return this.#store.delete(PREFIX + paymentHash)
  }

  async #check(own: string, { amountSat }: Price): Promise<void> {
    const othersSat = await this.#othersSat(own)
    if (othersSat + amountSat <= this.#maxSatPerDay) return
    const leftSat = Math.max(0, this.#maxSatPerDay - othersSat)
    throw new PurchaseError(
      'unpaid',
      'budget_exceeded',
      `The price is ${amountSat} sat, but only ${leftSat} of ${this.#maxSatPerDay} sat are left for the last 24 hours.`,
      { details: { amountSat, leftSat, maxSatPerDay: this.#maxSatPerDay } },
    )
  }

  async #othersSat(own: string): Promise<number> {
    let sumSat = 0
    for (const name of await this.#store.list(PREFIX)) {
      const spending = name === own ? undefined : spendingIn(name, await this.#store.get(name))
      if (!spending) continue
      const { amountSat, atMs, expiresAtMs } = spending
      const isPast = atMs < Date.now() - DAY_MS
      if (!isPast) sumSat += amountSat
      // Until the invoice can no longer be paid, the entry also makes `reserve` refuse to buy it again.
      else if (expiresAtMs < Date.now() - DAY_MS) await this.#store.delete(name)
    }
    return sumSat
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(act)
    this.#turn = done.catch(() => undefined)
    return done
  }
}

const textOf = ({ amountSat, expiresAtMs }: Price): string => JSON.stringify({ amountSat, expiresAtMs, atMs: Date.now() })

/** Throws if the text is not an entry of this budget: the amount is unknown, so it must not count as nothing. */
function spendingIn(name: string, text: string | undefined): Spending | undefined {
  if (text === undefined) return undefined
  const { amountSat, atMs, expiresAtMs } = (jsonIn(text) ?? {}) as Partial<Spending>
  if (![amountSat, atMs, expiresAtMs].every(Number.isFinite))
    throw new TypeError(
      `The entry ${name} of the store does not say how much was spent, so the budget of the last 24 hours is unknown. Check your wallet, then remove the entry to buy again.`,
    )
  return { amountSat, atMs, expiresAtMs } as Spending
}
