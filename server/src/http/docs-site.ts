import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import serveFiles from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../problems.ts'
import { acceptsPages } from './hooks/missing-page.ts'
import { PLAIN_PAGE_POLICY, plainPage } from './plain-page.ts'
import { FILE, PAGE_HEADERS } from './static.ts'

/** Pages have no dot in their name. */
const PAGE = /^[\w-]+(\/[\w-]+)*\/?$/
const RELOAD_SECONDS = 2

const BEING_BUILT = plainPage({
  title: 'Documentation',
  heading: 'The documentation is being built',
  head: `\n    <meta http-equiv="refresh" content="${RELOAD_SECONDS}" />`,
  body: `<p>This takes a few seconds after the first start. The page reloads by itself. If it does not appear, run <code>npm run build</code>.</p>
    <p>Meanwhile, the <a href="/dashboard/">dashboard</a> and <a href="/openapi.json">openapi.json</a> are available.</p>`,
})

/** Serves the built documentation. In a clone, it is built after the service has started, so it may appear later. */
export function docsSite(directory: string) {
  return async (app: FastifyInstance): Promise<void> => {
    await app.register(serveFiles, {
      // The parent directory, because it exists before the site is built.
      root: dirname(directory),
      serve: false,
      preCompressed: true,
      cacheControl: false,
      setHeaders: (response, path) => {
        const caching = path.includes('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
        for (const [name, value] of Object.entries({ ...PAGE_HEADERS, 'cache-control': caching })) response.setHeader(name, value)
      },
    })
    const retry = { 'retry-after': String(RELOAD_SECONDS) }
    const isThere = (file: string): boolean => existsSync(join(directory, file))
    const sendFile = (reply: FastifyReply, file: string): FastifyReply => reply.sendFile(join(basename(directory), file))
    const send = (request: FastifyRequest, reply: FastifyReply, file: string) => {
      if (isThere(file)) return sendFile(reply, file)
      if (isThere('index.html'))
        return acceptsPages(request) ? sendFile(reply.code(404).header('vary', 'accept'), '404.html') : reply.callNotFound()
      if (!acceptsPages(request))
        throw new Problem('service_unavailable', 'The documentation is being built. Try again in a few seconds.', {
          headers: retry,
        })
      const headers = { ...PAGE_HEADERS, ...retry, 'content-security-policy': PLAIN_PAGE_POLICY, 'cache-control': 'no-store' }
      return reply.code(503).headers(headers).type('text/html; charset=utf-8').send(BEING_BUILT)
    }
    const hidden = { config: { isFallback: true } }
    for (const path of ['/docs', '/docs/']) app.get(path, async (request, reply) => send(request, reply, 'index.html'))
    app.get('/llms.txt', async (request, reply) => send(request, reply, 'llms.txt'))
    app.get<{ Params: { '*': string } }>('/docs/*', hidden, async (request, reply) => {
      const path = request.params['*']
      if (PAGE.test(path)) return send(request, reply, `${path.replace(/\/$/, '')}.html`)
      return FILE.test(path) ? send(request, reply, path) : reply.callNotFound()
    })
  }
}
