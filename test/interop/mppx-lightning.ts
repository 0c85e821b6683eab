import { Credential, Method, z } from 'mppx'
import { expect } from 'vitest'

/** mppx has no Lightning method, so this is one as its users would write it. */
export const charge = Method.from({
  name: 'lightning',
  intent: 'charge',
  schema: {
    credential: { payload: z.object({ preimage: z.string() }) },
    request: z.object({
      amount: z.amount(),
      currency: z.literal('sat'),
      description: z.string(),
      externalId: z.string(),
      methodDetails: z.object({ invoice: z.string(), network: z.literal('regtest'), paymentHash: z.string() }),
    }),
  },
})

export const lightningOf = (pay: (invoice: string) => Promise<{ preimage: string; paymentHash: string }>) =>
  Method.toClient(charge, {
    createCredential: async ({ challenge }) => {
      const { methodDetails } = charge.schema.request.parse(challenge.request)
      const { preimage, paymentHash } = await pay(methodDetails.invoice)
      expect(paymentHash).toBe(methodDetails.paymentHash)
      return Credential.serialize({ challenge, payload: { preimage } })
    },
  })
