import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import serveFiles from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../problems.ts'

/** Nothing from elsewhere, nothing inline, no frame around it: a script that got into a page by a node's name could do nothing. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')
const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
}

/** A page of the app has no dot in its name; a script that is gone must not come back as a page. */
const PAGE = /^(?!assets(\/|$))([\w-]+(\/[\w-]+)*\/?)?$/
/** No empty, hidden or parent directory, and nothing that would have to be decoded. */
const FILE = /^([\w-]+\/)*[\w-]+(\.[\w-]+)+$/

/**
 * The built dashboard. The build leaves a compressed copy beside each file that is worth it. Whoever opens a page asks next who they
 * are, so `onPage` can prepare the answer.
 */
export function appFiles(directory: string, onPage: () => void) {
  return async (app: FastifyInstance): Promise<void> => {
    const isBuilt = existsSync(join(directory, 'index.html'))
    if (isBuilt)
      await app.register(serveFiles, {
        root: directory,
        serve: false,
        preCompressed: true,
        cacheControl: false,
        setHeaders: (response, path) => {
          const headers = { ...HEADERS, 'cache-control': cachingOf(relative(directory, path)) }
          for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
        },
      })
    const toApp = async (_request: FastifyRequest, reply: FastifyReply) => reply.redirect('/dashboard/', 302)
    const hidden = { schema: { hide: true } }
    app.get('/', hidden, toApp)
    app.get('/dashboard', hidden, toApp)
    app.get<{ Params: { '*': string } }>('/dashboard/*', { ...hidden, config: { isFallback: true } }, async (request, reply) => {
      const path = request.params['*']
      if (path === 'api' || path.startsWith('api/')) return reply.header('cache-control', 'no-store').callNotFound()
      if (!isBuilt) throw new Problem('not_found', 'The dashboard is not built yet: npm run build makes it.')
      if (PAGE.test(path)) {
        onPage()
        return reply.sendFile('index.html')
      }
      return FILE.test(path) ? reply.sendFile(path) : reply.callNotFound()
    })
  }
}

/** What has its content's hash in its name never changes. The page names the others, so it is always asked for. */
function cachingOf(path: string): string {
  if (path.startsWith('assets/')) return 'public, max-age=31536000, immutable'
  return /^index\.html(\.|$)/.test(path) ? 'no-store' : 'max-age=3600'
}
