import type { Rule } from './rule.ts'

const NEW_INVOICE = 'Ask your node for a new invoice for every 402, and copy every value from that invoice.'

/** What a challenge and its invoice must say. */
export const OFFER_RULES = {
  'challenge-malformed': {
    severity: 'error',
    expected: 'a list of challenges as in RFC 9110: scheme name="value", with each name once',
    fix: 'Quote every value, separate parameters by commas, and send each parameter once.',
  },
  'no-offer': {
    severity: 'error',
    expected: 'a challenge that can be paid over Lightning: Payment (MPP), L402 or PAYMENT-REQUIRED (x402)',
    fix: 'Send WWW-Authenticate or PAYMENT-REQUIRED with every 402.',
  },
  'offer-order': {
    severity: 'warning',
    expected: 'the L402 challenge before the Payment challenge',
    fix: 'Send the L402 line first: some L402 clients pay the first challenge and then fail.',
  },
  'prices-differ': {
    severity: 'warning',
    expected: 'the same price for an operation in every protocol',
    fix: 'Use the same amount for all invoices of a 402.',
  },
  'networks-differ': {
    severity: 'error',
    expected: 'all invoices of a 402 on one network',
    fix: 'Use nodes of the same network for all protocols.',
  },
  'clock-skew': {
    severity: 'warning',
    expected: 'clocks that differ by at most 60 seconds',
    fix: 'Synchronize the clock of the server and of the node. Also check the clock of this machine.',
  },
  'invoice-malformed': {
    severity: 'error',
    expected: 'a BOLT 11 invoice with one payment hash and either a description or a description hash',
    fix: 'Pass the node’s invoice on unchanged.',
  },
  'invoice-signature': {
    severity: 'error',
    expected: 'an invoice signed by the node that receives the payment',
    fix: 'Pass the node’s invoice on unchanged: wallets reject a changed one.',
  },
  'invoice-no-amount': {
    severity: 'error',
    expected: 'an invoice with an amount',
    fix: 'Create the invoice with the price of the operation.',
  },
  'invoice-expired': { severity: 'error', expected: 'an invoice that has not expired', fix: NEW_INVOICE },
  'invoice-short-lived': {
    severity: 'warning',
    expected: 'at least 60 seconds to pay',
    fix: 'Create invoices that are valid for 300 seconds: agents need time to decide and pay.',
  },
  'invoice-reused': {
    severity: 'error',
    expected: 'a new invoice for every visit',
    fix: 'Never send the same invoice twice: it can be paid only once, so the second buyer gets nothing. Check caches too.',
  },
  'mpp-malformed': {
    severity: 'error',
    expected: 'id, realm, method, intent and request, where request is base64url of JSON with an invoice',
    fix: 'Build the challenge as draft-httpauth-payment says, or use a library.',
  },
  'mpp-not-canonical': {
    severity: 'warning',
    expected: 'request as unpadded base64url of canonical JSON (RFC 8785)',
    fix: 'Sort the keys, and remove whitespace and padding: some clients encode the request again, and the id then no longer matches.',
  },
  'mpp-currency': {
    severity: 'error',
    expected: 'currency "sat"',
    fix: 'Give the amount in satoshis, and set currency to "sat".',
  },
  'mpp-amount': {
    severity: 'error',
    expected: 'the amount of the request equal to the amount of its invoice',
    fix: NEW_INVOICE,
  },
  'mpp-payment-hash': {
    severity: 'error',
    expected: 'methodDetails.paymentHash equal to the payment hash of the invoice',
    fix: NEW_INVOICE,
  },
  'mpp-network': {
    severity: 'error',
    expected: 'methodDetails.network equal to the network of the invoice; without it, mainnet',
    fix: 'Derive the network from the prefix of the invoice: lnbc mainnet, lnbcrt regtest, lntbs signet.',
  },
  'mpp-description': {
    severity: 'warning',
    expected: 'an invoice with the description of the request, or with its SHA-256',
    fix: 'Use the description of the request for the invoice: wallets show the description in the invoice.',
  },
  'mpp-no-expires': {
    severity: 'warning',
    expected: 'expires, at most the expiry of the invoice',
    fix: 'Send expires: some servers and clients refuse challenges without it.',
  },
  'mpp-expires': {
    severity: 'error',
    expected: 'an expires that is in the future and not after the expiry of the invoice',
    fix: 'Set expires to the timestamp of the invoice plus its expiry, in RFC 3339 and UTC.',
  },
  'mpp-header': {
    severity: 'error',
    expected: 'header="Payment-Authorization", or no header parameter',
    fix: 'Remove the parameter, unless Authorization is needed for something else.',
  },
  'mpp-size': { severity: 'warning', expected: 'a challenge below 8 KB', fix: 'Shorten the description.' },
  'l402-malformed': {
    severity: 'error',
    expected: 'macaroon="…", invoice="…"',
    fix: 'Send both parameters with every L402 challenge.',
  },
  'l402-macaroon': {
    severity: 'error',
    expected: 'a version 2 macaroon with first-party caveats and an identifier of 66 bytes, version 0',
    fix: 'Use identifier = version (2 bytes, 0) + payment hash + token id (32 bytes each).',
  },
  'l402-payment-hash': {
    severity: 'error',
    expected: 'the payment hash of the macaroon equal to the payment hash of the invoice',
    fix: 'Create the macaroon for the invoice that is sent with it: otherwise its preimage proves nothing.',
  },
  'l402-form': {
    severity: 'warning',
    expected: 'L402 macaroon="<padded standard base64>", invoice="<invoice>", in this order and spelling',
    fix: 'Send exactly this form: several clients accept no other, and some fail only after they have paid.',
  },
  'x402-malformed': {
    severity: 'error',
    expected: 'base64 of a JSON object with x402Version 2 and accepts',
    fix: 'Encode PAYMENT-REQUIRED as x402 version 2 says.',
  },
  'x402-terms': {
    severity: 'error',
    expected: 'requirements of the scheme exact on lnbtc',
    fix: 'Compare the requirements with the specification of exact on lnbtc.',
  },
  'x402-request-hash': {
    severity: 'error',
    expected: 'the hash of this request: method, public URL, body and bound headers',
    fix: 'Hash the request that was received, with its public URL. Behind a proxy, configure that URL.',
  },
  'x402-url': {
    severity: 'warning',
    expected: 'resource.url equal to the requested URL',
    fix: 'Configure the public URL of your server.',
  },
  'x402-pay-to': {
    severity: 'error',
    expected: 'payTo equal to the key of the node that signed the invoice',
    fix: 'Set payTo to the id of the node that creates the invoices.',
  },
  'x402-description': {
    severity: 'error',
    expected: 'an invoice whose only description is a hash, equal to requestHash',
    fix: 'Create the invoice with descriptionHash = requestHash and without a description.',
  },
  'x402-amount': { severity: 'error', expected: 'amount in millisatoshis, equal to the amount of the invoice', fix: NEW_INVOICE },
  'x402-expiry': {
    severity: 'error',
    expected: 'maxTimeoutSeconds equal to the expiry of the invoice in seconds',
    fix: NEW_INVOICE,
  },
  'x402-network': {
    severity: 'error',
    expected: 'the network of the invoice',
    fix: 'Derive the network from the prefix of the invoice.',
  },
} satisfies Record<string, Rule>
