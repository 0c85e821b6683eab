import { paywall } from '@boltyard/sdk/next'

/** A day of jokes for 100 sat: an L402 credential opens the route until it expires. */
export const GET = paywall(
  { nodeId: process.env.NODE_ID ?? '', amountSat: 100, protocol: 'l402', route: '/api/joke', description: 'Jokes for a day' },
  () => Response.json({ joke: 'Why did the node cross the channel? To balance the other side.' }),
)
