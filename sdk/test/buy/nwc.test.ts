import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { decrypt as nip04Decrypt, encrypt as nip04Encrypt } from 'nostr-tools/nip04'
import { v2 as nip44Oracle } from 'nostr-tools/nip44'
import { finalizeEvent, generateSecretKey, getPublicKey, verifyEvent } from 'nostr-tools/pure'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { temporaryDirectory } from '../../../server/test/support/server.ts'
import { nip04, nip44 } from '../../src/buy/crypto/nostr.ts'
import { type Buyer, buyer, purchaseOf } from '../../src/buy/index.ts'
import { GOODS, NOTHING, ONCE, PRICE, WeatherShop } from './shop.ts'

/** A wallet behind Nostr Wallet Connect, with another library's cryptography, a minimal relay, and the sandbox's play money. */

type Request = { method: string; params: Record<string, string> }
/** `lost`: the wallet pays, but its answer gets lost. `mute`: the wallet ignores every request. */
type Mood = 'honest' | 'lost' | 'mute' | { code: string }

class NwcService {
  readonly #secret = generateSecretKey()
  readonly client = generateSecretKey()
  readonly #paid = new Map<string, string>()
  readonly calls: string[] = []
  encryption: 'nip44_v2' | 'nip04' = 'nip44_v2'
  mood: Mood = 'honest'
  payInvoice!: (invoice: string) => Promise<{ paymentHash: string; preimage: string }>
  #server!: WebSocketServer
  #port = 0

  async open(): Promise<this> {
    this.#server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
    this.#server.on('connection', (socket) => {
      socket.on('message', (data) => {
        const [kind, first, second] = JSON.parse(String(data))
        if (kind === 'REQ' && second.kinds[0] === 13_194) socket.send(JSON.stringify(['EVENT', first, this.#info()]))
        if (kind === 'EVENT')
          void this.#answer(first).then((event) => event && socket.send(JSON.stringify(['EVENT', 'answer', event])))
      })
    })
    return this
  }

  close(): void {
    for (const socket of this.#server.clients) socket.terminate()
    this.#server.close()
  }

  get uri(): string {
    const relay = encodeURIComponent(`ws://127.0.0.1:${this.#port}`)
    return `nostr+walletconnect://${getPublicKey(this.#secret)}?relay=${relay}&secret=${Buffer.from(this.client).toString('hex')}`
  }

  #info(): object {
    const tags = this.encryption === 'nip44_v2' ? [['encryption', 'nip44_v2 nip04']] : []
    return finalizeEvent({ kind: 13_194, created_at: now(), tags, content: 'pay_invoice lookup_invoice get_info' }, this.#secret)
  }

  async #answer(event: any): Promise<object | undefined> {
    if (!verifyEvent(event) || event.kind !== 23_194 || event.pubkey !== getPublicKey(this.client)) throw new Error('not for us')
    const isNew = event.tags.some(([name, value]: string[]) => name === 'encryption' && value === 'nip44_v2')
    expect(isNew).toBe(this.encryption === 'nip44_v2')
    const key = nip44Oracle.utils.getConversationKey(this.#secret, event.pubkey)
    const request: Request = JSON.parse(
      isNew ? nip44Oracle.decrypt(event.content, key) : await nip04Decrypt(this.#secret, event.pubkey, event.content),
    )
    if (this.mood === 'mute') return undefined
    this.calls.push(request.method)
    const reply = await this.#reply(request)
    if (this.mood === 'lost' && request.method === 'pay_invoice') return undefined
    const text = JSON.stringify({ result_type: request.method, error: null, result: null, ...reply })
    const content = isNew ? nip44Oracle.encrypt(text, key) : await nip04Encrypt(this.#secret, event.pubkey, text)
    const tags = [
      ['p', event.pubkey],
      ['e', event.id],
    ]
    return finalizeEvent({ kind: 23_195, created_at: now(), tags, content }, this.#secret)
  }

  async #reply({ method, params }: Request): Promise<object> {
    if (method === 'get_info') return { result: { network: 'regtest' } }
    if (method === 'lookup_invoice') {
      const preimage = this.#paid.get(params.payment_hash ?? '')
      return preimage
        ? { result: { type: 'outgoing', preimage, settled_at: now(), fees_paid: 5_000 } }
        : { error: { code: 'NOT_FOUND', message: 'no such payment' } }
    }
    if (typeof this.mood === 'object') return { error: { ...this.mood, message: 'no' } }
    const { paymentHash, preimage } = await this.payInvoice(params.invoice ?? '')
    this.#paid.set(paymentHash, preimage)
    return { result: { preimage, fees_paid: 5_000 } }
  }
}
const now = (): number => Math.floor(Date.now() / 1000)

let shop: WeatherShop
let service: NwcService
let directory: string
beforeAll(async () => {
  shop = await WeatherShop.open()
})
beforeEach(async () => {
  await shop.renew()
  shop.market.paid = 0
  directory = temporaryDirectory()
  service = await new NwcService().open()
  service.payInvoice = (invoice) => shop.market.wallet.payInvoice({ invoice })
})
const services: NwcService[] = []
afterEach(() => {
  services.push(service)
})
afterAll(() => {
  for (const one of services) one.close()
})

const pays = (): Buyer =>
  buyer({
    wallet: { nwc: service.uri, WebSocket: WebSocket as never },
    maxSatPerRequest: 1_000,
    maxSatPerDay: 10_000,
    store: directory,
  })
const earned = async (): Promise<number> => (await shop.moved()).earned
const calls = (method: string): number => service.calls.filter((one) => one === method).length

test.each(['nip44_v2', 'nip04'] as const)('with %s, it pays once, and the goods are delivered', async (encryption) => {
  service.encryption = encryption
  const response = await pays().fetch(shop.url('/mpp'))
  expect([await response.text(), purchaseOf(response)?.feeSat]).toEqual([GOODS, 5])
  expect([await earned(), calls('pay_invoice')]).toEqual([ONCE.earned, 1])
})

test('an answer that is lost: the wallet is asked by the payment hash, and nothing is paid twice', async () => {
  service.mood = 'lost'
  const controller = new AbortController()
  const lost = pays().fetch(shop.url('/mpp'), { signal: controller.signal })
  await expect.poll(() => shop.market.paid).toBe(1)
  controller.abort()
  await expect(lost).rejects.toThrow()
  service.mood = 'honest'
  expect(await (await pays().fetch(shop.url('/mpp'))).text()).toBe(GOODS)
  expect([await earned(), calls('pay_invoice')]).toEqual([PRICE, 1])
})

test('a wallet that may have the request, but does not know the payment, is not asked to pay again', async () => {
  service.payInvoice = () => new Promise(() => undefined)
  const controller = new AbortController()
  const lost = pays().fetch(shop.url('/mpp'), { signal: controller.signal })
  await expect.poll(() => calls('pay_invoice')).toBe(1)
  controller.abort()
  await expect(lost).rejects.toThrow()
  await expect(pays().fetch(shop.url('/mpp'))).rejects.toMatchObject({ code: 'payment_unknown', outcome: 'unknown' })
  expect([await shop.moved(), calls('pay_invoice')]).toEqual([NOTHING, 1])
})

test('without money: certainly unpaid, and nothing is kept', async () => {
  service.mood = { code: 'INSUFFICIENT_BALANCE' }
  await expect(pays().fetch(shop.url('/mpp'))).rejects.toMatchObject({ code: 'payment_failed', outcome: 'unpaid' })
  expect(await pays().unfinished()).toEqual([])
})

test('an unreachable relay: certainly unpaid', async () => {
  service.close()
  await expect(pays().fetch(shop.url('/mpp'))).rejects.toMatchObject({ code: 'wallet_unreachable', outcome: 'unpaid' })
})

describe('the connection', () => {
  test.each([
    'nostr+walletconnect://x',
    'https://example.com',
    'nostr+walletconnect://',
    'nostr+walletconnect://a b?secret=mine',
  ])('%s is refused, without quoting it', (nwc) => {
    const make = (): Buyer => buyer({ wallet: { nwc, WebSocket: WebSocket as never }, maxSatPerRequest: 1, maxSatPerDay: 1 })
    expect(make).toThrow(/^(?!.*mine).*must look like nostr\+walletconnect/)
  })
})

test('NIP-44 and NIP-04 are those of another library, in both directions and for any length', async () => {
  const [mine, yours] = [generateSecretKey(), generateSecretKey()]
  const [ours, oracleKey] = [nip44(mine, getPublicKey(yours)), nip44Oracle.utils.getConversationKey(yours, getPublicKey(mine))]
  const old = nip04(mine, getPublicKey(yours))
  for (const length of [1, 31, 32, 33, 64, 65, 255, 256, 257, 1_000, 65_535]) {
    const text = 'é'.repeat(Math.floor(length / 2)) + 'x'.repeat(length % 2)
    expect(nip44Oracle.decrypt(await ours.encrypt(text), oracleKey)).toBe(text)
    expect(await ours.decrypt(nip44Oracle.encrypt(text, oracleKey))).toBe(text)
    expect(await nip04Decrypt(yours, getPublicKey(mine), await old.encrypt(text))).toBe(text)
    expect(await old.decrypt(await nip04Encrypt(yours, getPublicKey(mine), text))).toBe(text)
  }
  const changed = Buffer.from(nip44Oracle.encrypt('pay', oracleKey), 'base64')
  changed[40] = (changed[40] ?? 0) ^ 1
  await expect(ours.decrypt(changed.toString('base64'))).rejects.toThrow(/changed/)
})
