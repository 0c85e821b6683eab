/** `export const GET = paywall({ nodeId, amountSat: 10, route: '/api/joke' }, (request) => Response.json(…))` in a `route.ts`. */
export { paymentOf, paywall } from './request.ts'
