import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Client, Person } from '../../accounts/people/sign-in.ts'
import { type Config, operatorTokenFile } from '../../config.ts'
import { isLoopback } from '../../platform/loopback.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is signed in; set by requirePerson before a handler runs. */
    person: Person
  }
}

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

/** Not the answer to a missing API key: nobody is asked for a Bearer token here. */
export const signedOut = (): Problem => new Problem('unauthorized', 'Sign in first.')

/** Never true of a proxy's header or of a cookie of another name: only what is named here reaches the sign-in. */
export function clientOf(request: FastifyRequest, reply?: FastifyReply): Client {
  const { cookie, origin, 'user-agent': userAgent } = request.headers
  return { address: request.ip, cookie, origin, userAgent, signal: reply && closedSignal(reply) }
}

/** Aborted when the connection is closed: nothing needs to be done any more for who has left. */
function closedSignal({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController()
  if (raw.destroyed) controller.abort()
  else raw.once('close', () => controller.abort())
  return controller.signal
}

/** Somebody at the machine that the service runs on, and not a proxy there that speaks for everybody. */
export function isOnThisMachine(config: Config, { ip }: FastifyRequest): boolean {
  return isLoopback(new URL(config.publicUrl).hostname) && isLoopback(ip)
}

/** A session that is used is prolonged, and its cookie with it. */
export function requirePerson({ signIn }: Pick<RouteDeps, 'signIn'>) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const found = await signIn.whoIs(clientOf(request))
    if (!found) throw signedOut()
    request.person = found.person
    if (found.cookies.length > 0) reply.header('set-cookie', found.cookies)
  }
}

/**
 * A page of somebody else may send our cookie along, but it cannot send our origin. SameSite alone is not enough: a sibling domain, and
 * another port of this host, are the same site.
 */
export function requireSameOrigin(config: Config) {
  return async (request: FastifyRequest): Promise<void> => {
    if (SAFE_METHODS.includes(request.method)) return
    const origins = originsOf(config)
    if (!origins.includes(request.headers.origin ?? ''))
      throw new Problem('unauthorized', `This request is only accepted from ${origins[0]}.`)
    const type = request.headers['content-type']
    // What a form can send without asking us first.
    if (type !== undefined && !/^application\/json\s*(;|$)/i.test(type))
      throw new Problem('unauthorized', 'The body must be JSON, with Content-Type: application/json.')
  }
}

/**
 * Where the dashboard can be used: at PUBLIC_URL and, on one's own machine, under its other names too, because passkeys need a name and
 * 127.0.0.1 is none.
 */
export function originsOf({ host, publicUrl }: Config): string[] {
  const url = new URL(publicUrl)
  if (url.protocol !== 'http:' || !isLoopback(host) || !isLoopback(url.hostname)) return [url.origin]
  const port = url.port && `:${url.port}`
  const names = host === '::1' ? ['localhost', '[::1]'] : ['localhost', '127.0.0.1']
  return [...new Set([url.origin, ...names.map((name) => `http://${name}${port}`)])]
}

/** What a page must know before anybody is signed in, and who is. */
export function meRoutes({ config, accounts, signIn, links }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/me', { schema: { hide: true } }, async (request, reply) => {
      const found = await signIn.whoIs(clientOf(request))
      const account = found && (await accounts.find(found.person.accountId))
      if (found && found.cookies.length > 0) reply.header('set-cookie', found.cookies)
      return {
        user: found ? { id: found.person.userId, email: found.person.email, name: found.person.name } : null,
        account: account ? { id: account.id, name: account.name } : null,
        isSandbox: config.software.kind === 'sandbox',
        registration: config.registration,
        publicUrl: config.publicUrl,
        origins: originsOf(config),
        hasUnclaimedAccount: !found && (await links.isFirstAccountOpen()),
        operatorTokenFile: isOnThisMachine(config, request) ? operatorTokenFile(config) : null,
        version: packageJson.version,
        nodePriceSatPerDay: config.nodePriceSatPerDay,
        retentionDays: config.retentionDays,
      }
    })
  }
}
