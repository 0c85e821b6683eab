import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { isObject, jsonObjectIn } from '../../../protocol/src/bytes.ts'
import { qrCode } from '../../../protocol/src/qr-code.ts'
import { readChallenges } from '../../../protocol/src/www-authenticate.ts'
import type { CreatedPayment } from '../types.ts'
import type { Answer } from './answers.ts'
import type { Terms } from './terms.ts'

/** A page for people: what is sold, the amount, the invoice, and a way to get what was paid for. It loads nothing. */

/** An invoice, and what a credential is made of once there is a preimage. */
type Offer = { invoice: string; paymentHash: string; header: string } & (
  | { l402: string }
  | { mpp: Record<string, string> }
  | { x402: Record<string, unknown> }
)

/** Whether the visitor is a browser that shows a page. */
export const wantsPage = (accept: string | null | undefined): boolean => /(?:^|[\s,])text\/html(?:$|[\s,;])/i.test(accept ?? '')

/** The same response with a page as its body. The headers stay, so that a client that pays can use it too. */
export function asPage(
  answer: Answer,
  { amountSat, description }: Terms,
  payments: readonly CreatedPayment[],
  { accept, requiresAuth }: { accept: string; requiresAuth: boolean },
): Answer {
  // A payment credential in Authorization would replace the credential that the seller requires there.
  const offer = payments.map(offerOf).find((one) => one !== undefined && !(requiresAuth && one.header === 'Authorization'))
  if (!offer) return answer
  const headers = {
    ...answer.headers,
    // Replaces a policy for the whole site, which would block the script. It is not stricter, because the purchased page is shown
    // under the same policy.
    'Content-Security-Policy': "frame-ancestors 'none'",
    'Content-Type': 'text/html; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  }
  return { ...answer, headers, body: pageOf(description, amountSat, { ...offer, accept }) }
}

function offerOf(payment: CreatedPayment): Offer | undefined {
  const offer = challengeOf(payment)
  const paymentHash = offer && readInvoice(offer.invoice)?.paymentHash
  return offer && paymentHash !== undefined ? { ...offer, paymentHash } : undefined
}

function challengeOf({ protocol, challenge }: CreatedPayment) {
  if (protocol === 'x402') {
    const { accepts } = jsonObjectIn(challenge) ?? {}
    const [x402] = Array.isArray(accepts) ? accepts : []
    const invoice = isObject(x402) && isObject(x402.extra) ? x402.extra.invoice : undefined
    return typeof invoice === 'string' ? { invoice, header: 'PAYMENT-SIGNATURE', x402 } : undefined
  }
  const params = readChallenges(challenge)?.[0]?.params ?? new Map<string, string>()
  if (protocol === 'l402')
    return { invoice: params.get('invoice') ?? '', header: 'Authorization', l402: params.get('macaroon') ?? '' }
  const { methodDetails } = jsonObjectIn(params.get('request') ?? '') ?? {}
  const invoice = isObject(methodDetails) ? String(methodDetails.invoice) : ''
  return { invoice, header: params.get('header') ?? 'Authorization', mpp: Object.fromEntries(params) }
}

function pageOf(description: string, amountSat: number, offer: Offer & { accept: string }): string {
  const { invoice } = offer
  const price = `${amountSat.toLocaleString('en')} sat`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escaped(description)} · ${price}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 2rem auto; padding: 0 1rem; color: #1b1628; background: #fff }
h1 { margin: 0 0 .5rem; font-size: 1.75rem; line-height: 1.2; letter-spacing: -.02em; overflow-wrap: anywhere }
main > svg { width: 100%; height: auto; display: block; border: 1px solid #e3dfea; border-radius: 14px } a { color: #5325d4 } a, code { overflow-wrap: anywhere }
input, button { font: inherit; width: 100%; box-sizing: border-box; margin: .25rem 0; padding: .6rem; border: 1px solid #8f86a5; border-radius: 8px }
button { border-color: #5b2be0; background: #5b2be0; color: #fff; font-weight: 600; cursor: pointer }
footer { display: flex; align-items: center; gap: .4rem; margin-top: 2rem; color: #5b5469; font-size: .875rem }
</style>
<h1 dir="auto">${escaped(description)}</h1>
<p>This costs <strong>${price}</strong>, paid over Lightning.</p>
<p id="blocked">This page needs JavaScript: without it, you could not get what you pay for.</p>
<main hidden>
${svgOf(invoice)}
<p><a href="lightning:${escaped(invoice)}">Open in your wallet</a></p>
<p><code>${escaped(invoice)}</code></p>
<form>
<button type="button" id="pay" hidden>Pay with your browser’s wallet</button>
<label for="preimage">After you have paid, paste the proof of payment (preimage) from your wallet. <strong>Pay only if your wallet shows it.</strong></label>
<input id="preimage" required pattern="\\s*[0-9a-fA-F]{64}\\s*" autocomplete="off" spellcheck="false" placeholder="64 hex digits">
<button>Get it</button>
<p id="note" role="status"></p>
</form>
</main>
<footer>${MARK} Lightning payment with Boltyard</footer>
<script>const offer = ${inScript(offer)}
${SCRIPT}</script>
</html>
`
}

/** The same drawing as dashboard/public/icon.svg, included here because the page loads nothing. */
const MARK =
  '<svg width="18" height="18" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" fill="#5b2be0"/><path d="M21.5 0 5.5 18.5H14L10.5 32l16-18.5H18z" fill="#ffd23f"/></svg>'

/**
 * Presents the credential as a client would, and shows the response. A reload brings a new invoice, and a phone may reload the page while
 * its wallet is open, so the last offers are kept, and the preimage decides which of them was paid.
 */
const SCRIPT = `
const key = 'paywall ' + location.pathname + location.search
let offers = [offer]
try {
  offers = [offer, ...JSON.parse(sessionStorage.getItem(key) || '[]')].slice(0, 20)
  sessionStorage.setItem(key, JSON.stringify(offers))
} catch {}
// SHA-256 of 32 bytes in hex, which fit into one block. Browsers provide SHA-256 only on https and localhost.
function sha256(hex) {
  const primes = []
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n)
  const fraction = (root) => ((root % 1) * 2 ** 32) | 0
  const turn = (word, bits) => (word >>> bits) | (word << (32 - bits))
  const first = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))
  const w = (hex + '80' + '0'.repeat(58) + '0100').match(/.{8}/g).map((word) => parseInt(word, 16) | 0)
  let h = first
  primes.forEach((prime, t) => {
    if (t > 15) {
      const [x, y] = [w[t - 15], w[t - 2]]
      w[t] = (w[t - 16] + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + w[t - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))) | 0
    }
    const [a, b, c, d, e, f, g] = h
    const one = h[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + fraction(Math.cbrt(prime)) + w[t]
    const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
    h = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g]
  })
  return h.map((word, at) => ((word + first[at]) >>> 0).toString(16).padStart(8, '0')).join('')
}
const encode = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))))
function credential(paid, preimage) {
  const payload = { preimage }
  if (paid.l402) return 'L402 ' + paid.l402 + ':' + preimage
  if (paid.x402) return encode({ x402Version: 2, accepted: paid.x402, payload })
  return 'Payment ' + encode({ challenge: paid.mpp, payload }).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
const [form, input, note, pay] = ['form', '#preimage', '#note', '#pay'].map((one) => document.querySelector(one))
async function present(preimage) {
  note.textContent = 'One moment …'
  const hash = sha256(preimage)
  const paid = offers.find((one) => one.paymentHash === hash)
  if (!paid) throw new Error('This preimage does not belong to an invoice of this page.')
  // The request must be the one that was quoted, including the headers that the payment is bound to.
  const headers = { accept: paid.accept, [paid.header]: credential(paid, preimage) }
  const response = await fetch(location.href, { headers, cache: 'no-store' })
  if (response.ok) {
    if (!/^text\\/html\\b/i.test(response.headers.get('content-type') || '')) return location.replace(URL.createObjectURL(await response.blob()))
    // Shown in this page, not in a blob, so that its relative URLs lead to the shop.
    const html = await response.text()
    document.open()
    document.write(html)
    return document.close()
  }
  const problem = (await response.json().catch(() => undefined)) || {}
  // Only the reason is shown: the rest of a 402's detail is for programs, which may pay the new challenge.
  const [reason] = String(problem.detail || '').split(' "' + problem.description + '" costs ')
  if (response.status === 402) note.textContent = reason + ' If you have paid and got nothing, do not pay again: ask the seller.'
  else note.textContent = reason || 'That did not work (' + response.status + '). Do not pay again: try the same proof again.'
}
const show = (error) => { note.textContent = String(error.message || error) }
form.addEventListener('submit', (event) => {
  event.preventDefault()
  present(input.value.trim().toLowerCase()).catch(show)
})
if (window.webln) pay.hidden = false
pay.addEventListener('click', async () => {
  try {
    await window.webln.enable()
    const { preimage } = await window.webln.sendPayment(offer.invoice)
    input.value = preimage
    await present(preimage.trim().toLowerCase())
  } catch (error) {
    show(error)
  }
})
document.querySelector('main').hidden = false
document.querySelector('#blocked').remove()
`

function svgOf(invoice: string): string {
  // In upper case, the invoice needs fewer modules.
  const rows = qrCode(`LIGHTNING:${invoice.toUpperCase()}`)
  if (!rows) return ''
  const path = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + 4} ${y + 4}h1v1h-1z` : ''))).join('')
  const size = rows.length + 8
  return `<svg viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code of the invoice"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>`
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escaped = (text: string): string => text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? '')

/** JSON that cannot end the script element. */
const inScript = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c')
