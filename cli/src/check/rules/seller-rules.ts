import type { Rule } from './rule.ts'

/** What discovery must say, how a seller must respond, and what must happen after a payment. */
export const SELLER_RULES = {
  'discovery-malformed': {
    severity: 'error',
    expected: 'a JSON document of the documented shape',
    fix: 'Correct the document, or remove it: clients that read it fail.',
  },
  'discovery-charged': {
    severity: 'error',
    expected: 'discovery that is free',
    fix: 'Serve the document without a paywall: nobody pays to learn the price.',
  },
  'discovery-402-undeclared': {
    severity: 'warning',
    expected: 'responses["402"] for every operation with x-payment-info',
    fix: 'Declare the 402 response in openapi.json.',
  },
  'discovery-price': {
    severity: 'error',
    expected: 'the price of the live 402',
    fix: 'Generate discovery and prices from one list. If a price varies, set its amount to null in openapi.json and its model to dynamic in l402.json.',
  },
  'discovery-contradiction': {
    severity: 'warning',
    expected: 'the same price in every document',
    fix: 'Generate openapi.json and l402.json from one list.',
  },
  'discovery-offer-missing': {
    severity: 'error',
    expected: 'a live 402 with every protocol that is advertised',
    fix: 'Offer the protocol, or stop advertising it.',
  },
  'discovery-node-key': {
    severity: 'error',
    expected: 'invoices signed by provider.node_pubkey',
    fix: 'Set node_pubkey in l402.json to the id of the node that creates the invoices.',
  },
  'discovery-link': {
    severity: 'warning',
    expected: 'a Link that leads to a document',
    fix: 'Correct the Link header of the 402.',
  },
  'not-charged': {
    severity: 'error',
    expected: '402, because the operation is advertised as paid',
    fix: 'Put the operation behind the paywall, or remove its price from discovery.',
  },
  'unadvertised-charge': {
    severity: 'warning',
    expected: 'x-payment-info for every operation that is charged',
    fix: 'Add the operation’s price to openapi.json.',
  },
  'unexpected-status': {
    severity: 'warning',
    expected: '402, because the operation is advertised as paid',
    fix: 'Ask for payment before anything else that can refuse the request, or correct the advertised path.',
  },
  'server-error': { severity: 'error', expected: '402', fix: 'Look at the server’s log.' },
  'no-answer': {
    severity: 'error',
    expected: 'a complete HTTP response within 10 seconds',
    fix: 'Look at the server’s log, and at anything in front of the server.',
  },
  '402-cacheable': {
    severity: 'error',
    expected: 'Cache-Control: no-store on every 402',
    fix: 'Send Cache-Control: no-store. From a cache, two buyers would get the same invoice.',
  },
  'plain-http': {
    severity: 'warning',
    expected: 'https',
    fix: 'Use TLS: a credential is worth money, and anyone on the network path can read it.',
  },
  'cors-expose': {
    severity: 'warning',
    expected: 'Access-Control-Expose-Headers with every header that carries a challenge or a receipt',
    fix: 'Expose these headers: otherwise, scripts in browsers cannot read them.',
  },
  'cors-allow': {
    severity: 'warning',
    expected: 'a preflight response that allows the header of the credential',
    fix: 'Name it in Access-Control-Allow-Headers. “*” does not cover Authorization.',
  },
  'options-charged': {
    severity: 'error',
    expected: 'OPTIONS free of charge',
    fix: 'Respond to OPTIONS before the paywall. Browsers send it first and never pay for it.',
  },
  'head-status': {
    severity: 'warning',
    expected: 'the same status for HEAD as for GET',
    fix: 'Put HEAD behind the same paywall.',
  },
  'malformed-credential': {
    severity: 'error',
    expected: '402 with a new challenge',
    fix: 'Treat a credential that cannot be read like a missing one.',
  },
  'forged-credential': {
    severity: 'error',
    expected: '402 with a new challenge',
    fix: 'Verify the preimage against the payment hash, and that the payment is yours, before you deliver.',
  },
  'two-credentials': {
    severity: 'warning',
    expected: '400',
    fix: 'Refuse a request with credentials in two headers: otherwise a buyer may lose one of them.',
  },
  'paid-not-delivered': {
    severity: 'error',
    expected: 'a successful response to a paid credential',
    fix: 'Look at the server’s log. The invoice was paid.',
  },
  'head-uses-up': {
    severity: 'error',
    expected: 'a payment that is still unused after HEAD',
    fix: 'For HEAD, validate the credential without redeeming it, or ask for payment: a HEAD response delivers nothing.',
  },
  'delivered-again': {
    severity: 'error',
    expected: 'one delivery for one payment, also when requests arrive at the same time',
    fix: 'Claim the payment in one atomic step before you deliver, in a store that all processes share.',
  },
  'cheap-opens-dear': {
    severity: 'error',
    expected: 'a credential that opens only what was paid for',
    fix: 'Compare resource and amount of the payment with the request before you deliver.',
  },
  'receipt-missing': {
    severity: 'warning',
    expected: 'Payment-Receipt (MPP) or PAYMENT-RESPONSE (x402) on the paid response',
    fix: 'Send the receipt with the delivery.',
  },
  'receipt-wrong': {
    severity: 'error',
    expected: 'a receipt with status success that names this payment by its hash',
    fix: 'Build the receipt as the specification says. Never put the preimage into it.',
  },
  'paid-cacheable': {
    severity: 'error',
    expected: 'Cache-Control: private or no-store on a paid response',
    fix: 'Send Cache-Control: private. Otherwise, a shared cache gives others what one buyer has paid for.',
  },
} satisfies Record<string, Rule>
