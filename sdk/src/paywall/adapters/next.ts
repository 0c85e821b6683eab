/** In `proxy.ts`: `export const proxy = discovery({ title: 'Jokes', routes: { 'GET /api/joke': options } })`. */
export { discovery } from '../../discovery/discovery.ts'
/** In a `route.ts`: `export const GET = paywall({ nodeId, amountSat: 10, route: '/api/joke' }, (request) => Response.json(…))`. */
export { paymentOf, paywall } from './request.ts'
