import { type DiscoveryOptions, discoveryOf } from '../discovery.ts'

type Request = { method: string; url: string }
type Reply = {
  code(status: number): unknown
  header(name: string, value: string | string[]): unknown
  send(body: string): unknown
}

/** `app.addHook('onRequest', discovery({ title: 'Jokes', routes: { 'GET /joke': joke } }))`: the hook also runs where no route matches. */
export function discovery(options: DiscoveryOptions): (request: Request, reply: Reply) => Promise<unknown> {
  const documents = discoveryOf(options)
  return async ({ method, url }, reply) => {
    const answer = documents.answer(method, url.split('?')[0] ?? '')
    if (!answer) return undefined
    reply.code(answer.status)
    for (const [name, value] of Object.entries(answer.headers)) reply.header(name, value)
    reply.send(answer.body)
    return reply
  }
}
