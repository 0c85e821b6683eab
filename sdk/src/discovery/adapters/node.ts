import { type DiscoveryOptions, discoveryOf } from '../discovery.ts'

type Request = { method?: string | undefined; url?: string | undefined }
type Response = { writeHead(status: number, headers: Record<string, string | string[]>): unknown; end(body: string): unknown }

/**
 * For Express and NestJS: `app.use(discovery({ title: 'Jokes', routes: { 'GET /joke': joke } }))`. In plain `node:http`, create
 * `const documents = discovery(…)` once, and call `documents(request, response, () => …)`.
 */
export function discovery(options: DiscoveryOptions): (request: Request, response: Response, next: () => unknown) => void {
  const documents = discoveryOf(options)
  return (request, response, next) => {
    // Below a mount path, Express shortens `url`.
    const { originalUrl = request.url ?? '/' } = request as { originalUrl?: string }
    const answer = documents.answer(request.method ?? 'GET', originalUrl.split('?')[0] ?? '')
    if (!answer) return void next()
    response.writeHead(answer.status, answer.headers)
    response.end(answer.body)
  }
}
