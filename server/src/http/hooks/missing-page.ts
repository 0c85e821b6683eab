import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../../problems.ts'
import { PLAIN_PAGE_POLICY, plainPage } from '../plain-page.ts'

/** Programs call these paths, so they get JSON whatever their Accept header says. */
const API = /^\/(v1|operator|internal|dashboard\/api)(\/|$)/

const PAGE = plainPage({
  title: 'Page not found',
  heading: 'Page not found',
  body: '<p>There is no page at this address. Go to the <a href="/dashboard/">dashboard</a> or the <a href="/docs/">documentation</a>.</p>',
})

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
      'content-security-policy': PLAIN_PAGE_POLICY,
      'referrer-policy': 'no-referrer',
      vary: 'accept',
    })
    .type('text/html; charset=utf-8')
    .send(PAGE)
}
