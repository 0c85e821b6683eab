import { createHash, randomBytes } from 'node:crypto'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { invoiceOf } from '../../../cli/test/invoices.ts'
import type { paymentRequired } from '../../src/paywall/answers.ts'
import { asPage } from '../../src/paywall/page.ts'

/** Runs the page's script with only the browser objects that it uses. As on plain http, there is no `crypto.subtle`. */

type Listener = (event: { preventDefault(): void }) => void

const preimages = Array.from({ length: 8 }, () => randomBytes(32))
const pages = preimages.map((preimage, at) => {
  const invoice = invoiceOf(createHash('sha256').update(preimage).digest('hex'), 10)
  const payment = { protocol: 'l402' as const, challenge: `L402 macaroon="AgE${at}", invoice="${invoice}"` }
  const answer = { status: 402, headers: {}, body: '' } as ReturnType<typeof paymentRequired>
  const terms = { amountSat: 10, description: 'a joke' } as Parameters<typeof asPage>[1]
  const { body } = asPage(answer, terms, [payment] as unknown as Parameters<typeof asPage>[2], {
    accept: '*/*',
    requiresAuth: false,
  })
  return /<script>([\s\S]*)<\/script>/.exec(body)?.[1] ?? ''
})

/** Opens all pages one after the other in one tab, and pastes this preimage into the last one. */
async function credentialsSentFor(preimage: string): Promise<[sent: string[], note: string]> {
  const kept = new Map<string, string>()
  const sessionStorage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => kept.set(key, text),
  }
  const sent: string[] = []
  let note = { textContent: '' }
  const forms: Listener[] = []
  for (const script of pages) {
    note = { textContent: '' }
    const elements: Record<string, object> = {
      form: { addEventListener: (_name: string, listener: Listener) => forms.push(listener) },
      '#preimage': { value: preimage },
      '#note': note,
      '#pay': { addEventListener: () => undefined },
      main: {},
      '#blocked': { remove: () => undefined },
    }
    const fetch = async (_url: string, { headers }: { headers: Record<string, string> }) => {
      sent.push(headers.Authorization ?? '')
      return { status: 429, ok: false, json: async () => ({ detail: 'Later.' }) }
    }
    const location = { pathname: '/', search: '', href: 'http://shop/' }
    const globals = {
      document: { querySelector: (one: string) => elements[one] },
      window: { crypto: {} },
      sessionStorage,
      location,
      fetch,
    }
    runInNewContext(script, { ...globals, btoa, TextEncoder })
  }
  forms.at(-1)?.({ preventDefault: () => undefined })
  await expect.poll(() => note.textContent).not.toMatch(/^(?:|One moment …)$/)
  return [sent, note.textContent]
}

test.each([0, 1, 6, 7])(
  'C69: without crypto.subtle, the page presents the invoice that was paid, and no other: %i',
  async (at) => {
    const preimage = preimages[at]?.toString('hex') ?? ''
    expect(await credentialsSentFor(preimage)).toEqual([[`L402 AgE${at}:${preimage}`], 'Later.'])
  },
)

test('C69: a preimage that belongs to none of the invoices is not presented', async () => {
  expect(await credentialsSentFor('00'.repeat(32))).toEqual([[], expect.stringMatching(/does not belong/)])
})
