import { type DiscoveryOptions, discoveryOf } from '../discovery.ts'

type Context = {
  method: string
  path: string
  status: number
  body: unknown
  set(fields: { [name: string]: string | string[] }): void
}

/** `app.use(discovery({ title: 'Jokes', routes: { 'GET /joke': joke } }))` */
export function discovery(options: DiscoveryOptions): (context: Context, next: () => Promise<unknown>) => Promise<void> {
  const documents = discoveryOf(options)
  return async (context, next) => {
    const answer = documents.answer(context.method, context.path)
    if (!answer) return void (await next())
    context.status = answer.status
    context.body = answer.body === '' ? null : answer.body
    context.set(answer.headers)
  }
}
