/** In a `route.ts`: `export const GET = paywall({ nodeId, amountSat: 10, route: '/api/joke' }, (request) => Response.json(…))`. */
export { paymentOf, paywall } from './request.ts'
