import { fromBase64, toHex } from '../../../../protocol/src/bytes.ts'
import { readMacaroon } from '../../../../protocol/src/macaroon.ts'
import type { Challenge } from '../../../../protocol/src/www-authenticate.ts'
import type { Note } from '../findings.ts'
import { checkInvoice, type LiveOffer } from './offer.ts'

/** Version 0, payment hash and token id. */
const IDENTIFIER_LENGTH = 66
/** What Aperture's client reads; Go decodes only the standard alphabet with padding. */
const READABLE =
  /(?:^|[\s,])(?:LSAT|L402) macaroon="(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", invoice="[^"]+"/

export const isL402 = ({ scheme }: Challenge): boolean => /^(l402|lsat)$/i.test(scheme)

/** `header` is the whole WWW-Authenticate, because the spelling matters to clients that do not parse it. */
export function checkL402({ scheme, params }: Challenge, header: string, note: Note): LiveOffer | undefined {
  const macaroon = params.get('macaroon') ?? params.get('token')
  if (macaroon === undefined) note('l402-malformed', `${scheme} without a macaroon`)
  if (!params.has('invoice')) note('l402-malformed', `${scheme} without an invoice`)
  if (macaroon === undefined || !params.has('invoice')) return undefined
  if (!READABLE.test(header)) note('l402-form', header.slice(Math.max(0, header.indexOf(scheme))).slice(0, 80))
  const priced = checkInvoice(params.get('invoice'), 'l402', note)
  const identifier = readMacaroon(fromBase64(macaroon) ?? new Uint8Array())?.identifier
  if (!identifier) note('l402-macaroon', 'a macaroon that cannot be read')
  else if (identifier.length !== IDENTIFIER_LENGTH || identifier[0] !== 0 || identifier[1] !== 0)
    note('l402-macaroon', `an identifier of ${identifier.length} bytes, version ${toHex(identifier.subarray(0, 2))}`)
  else if (priced && toHex(identifier.subarray(2, 34)) !== priced.invoice.paymentHash)
    note('l402-payment-hash', `${toHex(identifier.subarray(2, 34))}, but the invoice has ${priced.invoice.paymentHash}`)
  if (!priced) return undefined
  return { protocol: 'l402', ...priced, present: (preimage) => ({ authorization: `${scheme} ${macaroon}:${preimage}` }) }
}
