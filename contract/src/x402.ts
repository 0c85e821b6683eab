import { Type } from 'typebox'
import { operation } from './operation.ts'
import { anyObject, flag, named, strict, text } from './schemas.ts'

/** The endpoints of an x402 facilitator, for sellers whose middleware expects one. Their fields are those of the x402 specification. */

const version = Type.Integer({ description: 'The version of x402: 2.' })
const network = text('The Lightning network.')

export const X402Kind = named(
  { x402Version: version, scheme: text('Always `exact`.'), network, extra: anyObject('Fields of the scheme.') },
  { $id: 'X402Kind', description: 'A kind of payment that can be settled here.' },
)
export const X402Supported = named(
  {
    kinds: Type.Array(X402Kind),
    extensions: Type.Array(Type.String(), { description: 'Always empty.' }),
    signers: anyObject('Always empty: nobody signs for a Lightning payment.'),
  },
  {
    $id: 'X402Supported',
    description: 'What can be settled here.',
    examples: [
      {
        kinds: [
          {
            x402Version: 2,
            scheme: 'exact',
            network: 'lnbtc:000000000019d6689c085ae165831e93',
            extra: { assetTransferMethod: 'bolt11', paymentFlow: 'upfront' },
          },
        ],
        extensions: [],
        signers: {},
      },
    ],
  },
)

const hash = '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018'
const requirementsExample = {
  scheme: 'exact',
  network: 'lnbtc:000000000019d6689c085ae165831e93',
  amount: '25000',
  asset: 'BTC',
  payTo: '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
  maxTimeoutSeconds: 300,
  extra: {
    paymentFlow: 'upfront',
    requestHash: hash,
    requestBindingProfile: 'http:1',
    requestBindingParams: { headers: [] },
    invoice: 'lnbc250n1…',
  },
}
export const X402PaymentParams = strict(
  {
    x402Version: version,
    paymentPayload: anyObject('The decoded value of the customer’s PAYMENT-SIGNATURE.'),
    paymentRequirements: anyObject('What the request that you are serving requires, with the hash of that request.'),
  },
  {
    $id: 'X402PaymentParams',
    description: 'A payment and the requirements that it must meet.',
    examples: [
      {
        x402Version: 2,
        paymentPayload: { x402Version: 2, accepted: requirementsExample, payload: { preimage: '00'.repeat(32) } },
        paymentRequirements: requirementsExample,
      },
    ],
  },
)

export const X402Verification = named(
  { isValid: flag('Whether `settle` would succeed now.'), invalidReason: Type.Optional(text('Why `settle` would fail.')) },
  { $id: 'X402Verification', description: 'The result of a verification.', examples: [{ isValid: true }] },
)
export const X402Settlement = named(
  {
    success: flag('Whether this call has settled the payment. Deliver only if it is true.'),
    errorReason: Type.Optional(
      text(
        'Why the payment was not settled. `exact_lnbtc_invoice_not_settled` and `exact_lnbtc_receiver_unavailable` are not final.',
      ),
    ),
    transaction: text('The payment hash; empty after a failure.'),
    network,
  },
  {
    $id: 'X402Settlement',
    description: 'The result of a settlement.',
    examples: [
      {
        success: true,
        transaction: 'a923c2c0e4fe77061ff1cb882171f6fdf926719bb7f5ffe2e05458438c52825e',
        network: 'lnbtc:000000000019d6689c085ae165831e93',
      },
    ],
  },
)

const ofFacilitator = { tag: 'Gateway', caller: 'apiKey', scope: 'gateway:write', status: 200, errors: [] } as const

export const listPaymentKinds = operation({
  ...ofFacilitator,
  method: 'GET',
  path: '/v1/gateway/x402/supported',
  operationId: 'listPaymentKinds',
  summary: 'List what this x402 facilitator supports',
  response: X402Supported,
})
export const verifyPayment = operation({
  ...ofFacilitator,
  method: 'POST',
  path: '/v1/gateway/x402/verify',
  operationId: 'verifyPayment',
  summary: 'Verify an x402 payment without using it up',
  description:
    'For payments that were created in this account. A refusal also has status 200. Deliver only after `settlePayment`.',
  body: X402PaymentParams,
  response: X402Verification,
})
export const settlePayment = operation({
  ...ofFacilitator,
  method: 'POST',
  path: '/v1/gateway/x402/settle',
  operationId: 'settlePayment',
  summary: 'Verify an x402 payment and claim the delivery',
  description:
    'Exactly one call succeeds; all others get `duplicate_settlement`, even if they repeat the first one. A refusal also has status 200.',
  body: X402PaymentParams,
  response: X402Settlement,
})
