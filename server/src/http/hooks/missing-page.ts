import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../../problems.ts'

/** Paths of programs, which get JSON whatever they accept. */
const API = /^\/(v1|operator|internal|dashboard\/api)(\/|$)/

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>Page not found · Boltyard</title>
  </head>
  <body>
    <h1>Page not found</h1>
    <p>There is no page at this address. Go to the <a href="/dashboard/">dashboard</a> or the <a href="/docs/">documentation</a>.</p>
  </body>
</html>
`

/** Whether a person opened a path that does not exist. JSON would look like a defect to them. */
export function isMissingPage(request: FastifyRequest, { code }: Problem): boolean {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  return code === 'not_found' && isRead && acceptsPages(request) && !API.test(request.url.split('?')[0] ?? '')
}

export const acceptsPages = ({ headers }: FastifyRequest): boolean => headers.accept?.includes('text/html') === true

export function sendMissingPage(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .headers({
      'content-security-policy':
        "default-src 'none'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      'referrer-policy': 'no-referrer',
      vary: 'accept',
    })
    .type('text/html; charset=utf-8')
    .send(PAGE)
}
