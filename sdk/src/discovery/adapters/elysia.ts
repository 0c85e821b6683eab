import { type DiscoveryOptions, discovery as fromRequest } from '../discovery.ts'

/** `app.onRequest(discovery({ title: 'Jokes', routes: { 'GET /joke': joke } }))` */
export function discovery(options: DiscoveryOptions): (context: { request: Request }) => Response | undefined {
  const documents = fromRequest(options)
  return ({ request }) => documents(request)
}
