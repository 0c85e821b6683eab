import type { Static } from 'typebox'
import { expectTypeOf, test } from 'vitest'
import type * as keys from '../contract/src/api-keys.ts'
import type * as events from '../contract/src/events.ts'
import type * as nodes from '../contract/src/nodes.ts'
import type * as payments from '../contract/src/payments.ts'
import type * as hooks from '../contract/src/webhooks.ts'
import type * as sdk from '../sdk/src/types.ts'
import type * as webhooks from '../sdk/src/webhooks/types.ts'

// Checked by the compiler, in `npm run check`: both sides are types.
test('D11: the SDK’s types are exactly the contract’s', () => {
  expectTypeOf<sdk.ApiKey>().toEqualTypeOf<Static<typeof keys.ApiKey>>()
  expectTypeOf<sdk.AccountEvent>().toEqualTypeOf<Static<typeof events.AccountEvent>>()
  expectTypeOf<sdk.EventPage>().toEqualTypeOf<Static<typeof events.EventPage>>()
  expectTypeOf<sdk.ListEventsParams>().toEqualTypeOf<Static<typeof events.ListEventsParams>>()
  expectTypeOf<webhooks.CreatedWebhook>().toEqualTypeOf<Static<typeof hooks.CreatedWebhook>>()
  expectTypeOf<webhooks.CreateWebhookParams>().toEqualTypeOf<Static<typeof hooks.CreateWebhookParams>>()
  expectTypeOf<webhooks.DeliveryPage>().toEqualTypeOf<Static<typeof hooks.DeliveryPage>>()
  expectTypeOf<sdk.Node>().toEqualTypeOf<Static<typeof nodes.Node>>()
  expectTypeOf<sdk.CreatedNode>().toEqualTypeOf<Static<typeof nodes.CreatedNode>>()
  expectTypeOf<sdk.CreateNodeParams>().toEqualTypeOf<Static<typeof nodes.CreateNodeParams>>()
  expectTypeOf<sdk.NodeUpdates>().toEqualTypeOf<Static<typeof nodes.NodeUpdates>>()
  expectTypeOf<sdk.CreatePaymentParams>().toEqualTypeOf<Static<typeof payments.CreatePaymentParams>>()
  expectTypeOf<sdk.CreatedPayment>().toEqualTypeOf<Static<typeof payments.CreatedPayment>>()
  expectTypeOf<sdk.Payment>().toEqualTypeOf<Static<typeof payments.Payment>>()
  expectTypeOf<sdk.PaymentPage>().toEqualTypeOf<Static<typeof payments.PaymentPage>>()
  expectTypeOf<sdk.ListPaymentsParams>().toEqualTypeOf<Static<typeof payments.ListPaymentsParams>>()
  expectTypeOf<sdk.PaidPayment>().toEqualTypeOf<Static<typeof payments.PaidPayment>>()
  expectTypeOf<sdk.RedeemPaymentParams>().toEqualTypeOf<Static<typeof payments.RedeemPaymentParams>>()
  expectTypeOf<sdk.RedeemedPayment>().toEqualTypeOf<Static<typeof payments.RedeemedPayment>>()
  expectTypeOf<sdk.ConfirmDeliveriesParams>().toEqualTypeOf<Static<typeof payments.ConfirmDeliveriesParams>>()
  expectTypeOf<sdk.DeliveryResults>().toEqualTypeOf<Static<typeof payments.DeliveryResults>>()
  expectTypeOf<sdk.ReleasePaymentParams>().toEqualTypeOf<Static<typeof payments.ReleasePaymentParams>>()
  expectTypeOf<sdk.ReleasedPayment>().toEqualTypeOf<Static<typeof payments.ReleasedPayment>>()
  expectTypeOf<sdk.ApiKey>().not.toEqualTypeOf<Omit<Static<typeof keys.ApiKey>, 'scopes'>>()
})
