import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { buyer, memoryStore, type PurchaseStore } from '../../src/buy/index.ts'
import { outcomeOf, Seller } from './seller.ts'

/** What depends on the caller and the runtime: aborts, redirects, the options of `fetch`, and the default store. */

let seller: Seller
beforeEach(async () => {
  seller = await new Seller().open()
})
afterEach(() => {
  vi.unstubAllGlobals()
})

describe('a caller who gives up', () => {
  /** A store in which the caller gives up right before the first entry for which `isAt` is true is written. */
  function givingUp(controller: AbortController, isAt: (name: string, text: string) => boolean): PurchaseStore {
    const inner = memoryStore()
    const before = <T>(name: string, text: string, act: () => Promise<T>): Promise<T> => {
      if (isAt(name, text)) controller.abort(new Error('gave up'))
      return act()
    }
    return {
      ...inner,
      set: (name, text) => before(name, text, () => inner.set(name, text)),
      add: (name, text) => before(name, text, () => inner.add(name, text)),
    }
  }

  test.each<[string, (name: string, text: string) => boolean]>([
    ['while the budget is reserved', (name) => name.startsWith('spent.')],
    ['while the purchase is kept', (name) => name.startsWith('purchase.')],
    ['at the last moment', (_, text) => text.includes('"state":"paying"')],
  ])('%s does not pay, and the next call may', async (_, isAt) => {
    const controller = new AbortController()
    const store = givingUp(controller, isAt)
    expect(await outcomeOf(seller.buyer({ store }).fetch(seller.url, { signal: controller.signal }))).toBe('Error: gave up')
    expect(seller.paid).toEqual([])
    expect([await outcomeOf(seller.buyer({ store }).fetch(seller.url)), seller.paid.length]).toEqual(['Sunny', 1])
  })

  test.each(['init', 'Request'])('is heard after a garbage collection, by the signal of the %s', async (from) => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const controller = new AbortController()
    const { signal } = controller
    let asked = false
    const wallet = async (): Promise<string> => {
      for (let round = 0; round < 5; round++) {
        collect()
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      controller.abort(new Error('gave up'))
      asked = true
      throw new Error('lost')
    }
    const lookUp = async (): Promise<undefined> => undefined
    const pay = seller.buyer({ wallet: { pay: wallet, lookUp } })
    const given = from === 'init' ? pay.fetch(seller.url, { signal }) : pay.fetch(new Request(seller.url, { signal }))
    // Without the signal, the buyer would keep asking the wallet for two minutes.
    expect([await outcomeOf(given), asked]).toEqual(['Error: gave up', true])
  })
})

describe('a redirect from https to http', () => {
  const { fetch } = globalThis

  test('is not followed: nothing is asked or paid there', async () => {
    vi.stubGlobal('fetch', (url: URL, init: RequestInit) =>
      url.protocol === 'https:'
        ? Promise.resolve(new Response(null, { status: 302, headers: { location: seller.url } }))
        : fetch(url, init),
    )
    expect(await outcomeOf(seller.buyer().fetch('https://shop.test/'))).toEqual(['bad_redirection', 'unpaid'])
    expect([seller.got, seller.paid]).toEqual([[], []])
  })

  test('that a browser has followed is not paid', async () => {
    vi.stubGlobal('fetch', async (url: URL, init: RequestInit) => {
      if (init.redirect === 'follow') return fetch(seller.url)
      if (url.protocol === 'http:') return fetch(url, init)
      return Object.defineProperty(new Response(null), 'type', { value: 'opaqueredirect' })
    })
    expect(await outcomeOf(seller.buyer().fetch('https://shop.test/'))).toEqual(['bad_redirection', 'unpaid'])
    expect(seller.paid).toEqual([])
  })
})

test('a POST that a server redirects is not sent elsewhere by a browser, which would turn it into a GET', async () => {
  const { fetch } = globalThis
  const sent: unknown[] = []
  vi.stubGlobal('fetch', async (_url: URL, { redirect }: RequestInit) => {
    sent.push(redirect)
    return redirect === 'follow'
      ? fetch(seller.url)
      : Object.defineProperty(new Response(null), 'type', { value: 'opaqueredirect' })
  })
  const outcome = await outcomeOf(seller.buyer().fetch('https://shop.test/', { method: 'POST', body: 'x' }))
  expect([outcome, sent]).toEqual([expect.stringContaining('redirects the POST request'), ['manual']])
})

describe('the options of `fetch`', () => {
  test('go with every request, from `init` and from a Request', async () => {
    const { fetch } = globalThis
    const told: unknown[] = []
    vi.stubGlobal('fetch', (url: URL, { dispatcher, ...init }: any) => {
      told.push([init.credentials, init.cache, dispatcher])
      return fetch(url, init)
    })
    const init = { credentials: 'include', cache: 'no-store' } as const
    await outcomeOf(seller.buyer().fetch(seller.url, { ...init, dispatcher: 'mine' as never }))
    await outcomeOf(seller.buyer().fetch(new Request(seller.url, init)))
    const expected = ['mine', 'mine', undefined, undefined].map((dispatcher) => ['include', 'no-store', dispatcher])
    expect(told).toEqual(expected)
  })

  test('`integrity` is refused, because the 402 has another body', async () => {
    expect(await outcomeOf(seller.buyer().fetch(seller.url, { integrity: 'sha256-AAAA' }))).toMatch(/^TypeError: `integrity`/)
    expect(seller.got).toEqual([])
  })
})

test('a runtime without files must say where purchases are kept', () => {
  const options = { wallet: seller.pay, maxSatPerRequest: 1, maxSatPerDay: 1 }
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
  expect(() => buyer(options)).toThrow(/Pass `store`.*`memoryStore\(\)`/)
  expect(buyer({ ...options, store: memoryStore() })).toHaveProperty('fetch')
  vi.unstubAllGlobals()
  expect(buyer(options)).toHaveProperty('fetch')
})
