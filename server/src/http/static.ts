import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import serveFiles from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../problems.ts'

/** No content from other origins, nothing inline and no framing: a script injected through a node's name, for example, would not run. */
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
export const PAGE_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
}

/** Pages have no dot in their name. A request for a script that no longer exists must not get the page instead. */
const PAGE = /^(?!assets(\/|$))([\w-]+(\/[\w-]+)*\/?)?$/
/** No empty segments, no names that begin with a dot (so no `..`), and nothing that needs decoding. */
export const FILE = /^([\w-]+\/)*[\w-]+(\.[\w-]+)+$/

/**
 * Serves the built dashboard. The build adds a compressed copy of each file that benefits. Each page first asks who is signed in, so
 * `onPage` can prepare for that request.
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
          const headers = { ...PAGE_HEADERS, 'cache-control': cachingOf(relative(directory, path)) }
          for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
        },
      })
    const toApp = async (_request: FastifyRequest, reply: FastifyReply) => reply.redirect('/dashboard/', 302)
    app.get('/', toApp)
    app.get('/dashboard', toApp)
    // Browsers request this path for pages that link no icon.
    if (isBuilt) app.get('/favicon.ico', async (_request, reply) => reply.sendFile('icon.svg'))
    app.get<{ Params: { '*': string } }>('/dashboard/*', { config: { isFallback: true } }, async (request, reply) => {
      const path = request.params['*']
      if (path === 'api' || path.startsWith('api/')) return reply.header('cache-control', 'no-store').callNotFound()
      if (!isBuilt) throw new Problem('not_found', 'The dashboard has not been built. Run npm run build.')
      if (PAGE.test(path)) {
        onPage()
        return reply.sendFile('index.html')
      }
      return FILE.test(path) ? reply.sendFile(path) : reply.callNotFound()
    })
  }
}

/** A file with a content hash in its name never changes. The page refers to those names, so the page itself is never cached. */
function cachingOf(path: string): string {
  if (path.startsWith('assets/')) return 'public, max-age=31536000, immutable'
  return /^index\.html(\.|$)/.test(path) ? 'no-store' : 'max-age=3600'
}
