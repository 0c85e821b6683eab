import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Client, Person } from '../../accounts/people/sign-in.ts'
import { type Config, operatorTokenFile } from '../../config.ts'
import { isLoopback } from '../../platform/loopback.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The signed-in person; set by requirePerson before a handler runs. */
    person: Person
  }
}

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

/** Unlike the response to a missing API key, this one does not ask for a Bearer token. */
export const signedOut = (): Problem => new Problem('unauthorized', 'Sign in first.')

/** An allow-list: only these fields of a request reach the sign-in library, never a proxy's header. */
export function clientOf(request: FastifyRequest, reply?: FastifyReply): Client {
  const { cookie, origin, 'user-agent': userAgent } = request.headers
  return { address: request.ip, cookie, origin, userAgent, signal: reply && closedSignal(reply) }
}

/** Aborted when the client disconnects, so that no more work is done for it. */
function closedSignal({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController()
  if (raw.destroyed) controller.abort()
  else raw.once('close', () => controller.abort())
  return controller.signal
}

/** Whether the client is on the machine that the service runs on, and is not a proxy there that forwards for others. */
export function isOnThisMachine(config: Config, { ip }: FastifyRequest): boolean {
  return isLoopback(new URL(config.publicUrl).hostname) && isLoopback(ip)
}

/** Using a session extends it and its cookie. */
export function requirePerson({ signIn }: Pick<RouteDeps, 'signIn'>) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const found = await signIn.whoIs(clientOf(request))
    if (!found) throw signedOut()
    request.person = found.person
    if (found.cookies.length > 0) reply.header('set-cookie', found.cookies)
  }
}

/**
 * Another site's page can make the browser send our cookie, but it cannot fake our origin. SameSite alone is not enough: a sibling domain,
 * or another port of this host, is the same site.
 */
export function requireSameOrigin(config: Config) {
  return async (request: FastifyRequest): Promise<void> => {
    if (SAFE_METHODS.includes(request.method)) return
    const origins = originsOf(config)
    if (!origins.includes(request.headers.origin ?? ''))
      throw new Problem('unauthorized', `This request is only accepted from ${origins[0]}.`, {
        details: { reason: 'wrong_origin' },
      })
    const type = request.headers['content-type']
    // A form can send other types without a preflight request.
    if (type !== undefined && !/^application\/json\s*(;|$)/i.test(type))
      throw new Problem('unauthorized', 'The body must be JSON, with Content-Type: application/json.')
  }
}

/**
 * Where the dashboard can be used: at PUBLIC_URL and, on the developer's own machine, at its other names too, because passkeys need a host
 * name and do not work with 127.0.0.1.
 */
export function originsOf({ host, publicUrl }: Config): string[] {
  const url = new URL(publicUrl)
  if (url.protocol !== 'http:' || !isLoopback(host) || !isLoopback(url.hostname)) return [url.origin]
  const port = url.port && `:${url.port}`
  const names = host === '::1' ? ['localhost', '[::1]'] : ['localhost', '127.0.0.1']
  return [...new Set([url.origin, ...names.map((name) => `http://${name}${port}`)])]
}

/** What the page needs to know before anyone is signed in, and who is signed in. */
export function meRoutes({ config, accounts, signIn, links }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/me', async (request, reply) => {
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
