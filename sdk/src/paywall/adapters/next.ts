/** In a `route.ts`: `export const GET = paywall({ nodeId, amountSat: 10, route: '/api/joke' }, (request) => Response.json(…))`. */

/** In `proxy.ts`: `export const proxy = discovery({ title: 'Jokes', routes: { 'GET /api/joke': joke } })`. */
export { discovery } from '../../discovery/discovery.ts'
export { paymentOf, paywall } from './request.ts'
