import type { FastifyInstance, FastifyReply } from 'fastify'
import {
  beginTwoFactor,
  changeOwnEmail,
  confirmTwoFactor,
  deleteAccount,
  endOwnSession,
  endTwoFactor,
  getAccountDeletion,
  getSecurity,
  renameAccount,
  replaceRecoveryCodes,
} from '../../../../contract/src/dashboard/settings.ts'
import { AuthRefusal } from '../../accounts/people/sign-in.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { addressOf } from '../hooks/rate-limit.ts'
import { clientOf, isOnThisMachine } from '../hooks/session.ts'
import { addRoute } from '../route.ts'

/** What people change about themselves and their account. */
export function dashboardSettingsRoutes({ settings, signIn, config }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    addRoute(app, getSecurity, async ({ person }) => settings.security(person))
    addRoute(app, changeOwnEmail, async (request, reply) => {
      const client = clientOf(request, reply)
      // Like a sign-up, this reveals whether an address has an account, so it counts towards the same limit.
      const admit = async (): Promise<void> => {
        if (!isOnThisMachine(config, request)) await signIn.guard.admitSignUp(addressOf(request))
      }
      const changed = await withPassword(settings.changeEmail(client, request.person, request.body, admit))
      // The browser stays known, under the new address (C44).
      addCookies(reply, [signIn.devices.headerFor(client.cookie, changed.email)])
      return changed
    })
    addRoute(app, endOwnSession, async ({ person, params }) => settings.endSession(person, params.id))
    addRoute(app, beginTwoFactor, async (request, reply) =>
      withPassword(settings.beginTwoFactor(clientOf(request, reply), request.person, request.body.password)),
    )
    addRoute(app, confirmTwoFactor, async ({ person, body }) => ({
      recoveryCodes: await settings.confirmTwoFactor(person, body.code),
    }))
    addRoute(app, endTwoFactor, async ({ person, body }) => settings.turnOffTwoFactor(person, body.code))
    addRoute(app, replaceRecoveryCodes, async ({ person, body }) => ({
      recoveryCodes: await settings.replaceRecoveryCodes(person, body.code),
    }))

    addRoute(app, renameAccount, async ({ person, body }) => settings.renameAccount(person, body.name))
    addRoute(app, getAccountDeletion, async ({ person }) => settings.deletion(person))
    addRoute(app, deleteAccount, async (request, reply) => {
      const client = clientOf(request, reply)
      await withPassword(settings.deleteAccount(client, request.person, request.body))
      // Only to clear the cookie; the session is already gone.
      const { cookies } = await signIn.call(client, { method: 'POST', path: '/sign-out' })
      addCookies(reply, cookies)
    })
  }
}

/** Keeps the cookie that extends the session, which was set before the handler ran. */
function addCookies(reply: FastifyReply, cookies: string[]): void {
  const before = (reply.getHeader('set-cookie') ?? []) as string | string[]
  reply.removeHeader('set-cookie')
  reply.header('set-cookie', [before, cookies].flat())
}

async function withPassword<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw error instanceof AuthRefusal
      ? new Problem('bad_request', 'This account has no password. Use a passkey instead.')
      : error
  })
}
