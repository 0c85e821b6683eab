import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../problems.ts'

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
}
const COMPRESSIBLE = /^(text|image\/svg|application)/

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
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

type File = { type: string; caching: string; plain: Buffer; gzipped: Buffer | undefined }

/**
 * The built app. Its few files are read once, at the start: a request is a look into a table of names, so that no path, however it is
 * written, leads anywhere else, and each is compressed once.
 */
export function appFiles(directory: string) {
  const files = readFiles(directory)
  return async (app: FastifyInstance): Promise<void> => {
    const toApp = async (_request: FastifyRequest, reply: FastifyReply) => reply.redirect('/dashboard/', 302)
    const hidden = { schema: { hide: true } }
    app.get('/', hidden, toApp)
    app.get('/dashboard', hidden, toApp)
    app.get<{ Params: { '*': string } }>('/dashboard/*', { ...hidden, config: { isFallback: true } }, async (request, reply) => {
      const path = request.params['*']
      if (path === 'api' || path.startsWith('api/')) return reply.header('cache-control', 'no-store').callNotFound()
      const file = files.get(path) ?? (isPage(path) ? files.get('index.html') : undefined)
      if (files.size === 0) throw new Problem('not_found', 'The dashboard is not built yet: npm run build makes it.')
      if (!file) throw new Problem('not_found', 'This path does not exist.')
      return send(request, reply, file)
    })
  }
}

/** A page of the app has no dot in its name; a script that is gone must not come back as a page. */
const isPage = (path: string): boolean => /^([\w-]+(\/[\w-]+)*\/?)?$/.test(path) && !/^assets(\/|$)/.test(path)

function send(request: FastifyRequest, reply: FastifyReply, { type, caching, plain, gzipped }: File): FastifyReply {
  reply.headers({ ...HEADERS, 'content-type': type, 'cache-control': caching, vary: 'accept-encoding' })
  return gzipped && takesGzip(String(request.headers['accept-encoding'] ?? ''))
    ? reply.header('content-encoding', 'gzip').send(gzipped)
    : reply.send(plain)
}

/** Split, not matched as a whole: optional spaces around optional parts are quadratic in a pattern, and anyone may send this header. */
function takesGzip(acceptEncoding: string): boolean {
  return acceptEncoding.split(',').some((coding) => {
    const [name = '', weight = ''] = coding.split(';').map((part) => part.trim().toLowerCase())
    return name === 'gzip' && (weight === '' || (weight.startsWith('q=') && Number(weight.slice(2)) > 0))
  })
}

function readFiles(directory: string): Map<string, File> {
  if (!existsSync(join(directory, 'index.html'))) return new Map()
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => statSync(join(directory, name)).isFile())
  return new Map(
    files.map((name) => {
      const path = name.split(sep).join('/')
      const type = TYPES[extname(name)] ?? 'application/octet-stream'
      const plain = readFileSync(join(directory, name))
      const smaller = COMPRESSIBLE.test(type) ? gzipSync(plain, { level: 9 }) : plain
      return [path, { type, caching: cachingOf(path), plain, gzipped: smaller.length < plain.length ? smaller : undefined }]
    }),
  )
}

/** What has its content's hash in its name never changes. The page names the others, so it is always asked for. */
function cachingOf(path: string): string {
  if (path.startsWith('assets/')) return 'public, max-age=31536000, immutable'
  return path === 'index.html' ? 'no-store' : 'max-age=3600'
}
