import { ApiError, api } from './client.ts'
import type { Passkey } from './types.ts'

const AUTH = '/auth'
/** For calls where a 401 may mean something other than the end of the session, such as a wrong password or a sign-in too long ago. */
const own = { keepsSession: true } as const

/** Refused with `code_required` if the person has two-factor sign-in and no code is given. */
export const signIn = (email: string, password: string, code?: string): Promise<unknown> =>
  api.post(`${AUTH}/sign-in/email`, { email, password, ...(code === undefined ? {} : { code }) }, own)

export const signUp = (email: string, password: string): Promise<unknown> =>
  api.post(`${AUTH}/sign-up/email`, { email, password, name: email.split('@')[0] ?? email }, own)

export const signOut = (): Promise<unknown> => api.post(`${AUTH}/sign-out`, {}, own)

export const signOutEverywhere = (): Promise<unknown> => api.post(`${AUTH}/revoke-sessions`, {})

/** Ends all other sessions, in case the old password was leaked. */
export const changePassword = (currentPassword: string, newPassword: string): Promise<unknown> =>
  api.post(`${AUTH}/change-password`, { currentPassword, newPassword, revokeOtherSessions: true })

/** A passkey belongs to a host name: browsers refuse to create one for an IP address. */
const isName = (hostname: string): boolean => !/^[\d.]+$|:/.test(hostname)

export const canUsePasskeys = (): boolean =>
  typeof window.PublicKeyCredential === 'function' && window.isSecureContext && isName(window.location.hostname)

/** An address of the dashboard that supports passkeys. */
export const passkeyOrigin = (origins: string[]): string | undefined =>
  origins.find((origin) => {
    const { protocol, hostname } = new URL(origin)
    return hostname === 'localhost' || (protocol === 'https:' && isName(hostname))
  })

export const listPasskeys = async (signal: AbortSignal): Promise<Passkey[]> =>
  (await api.get<{ passkeys: Passkey[] }>(`${AUTH}/passkey/list-user-passkeys`, { signal })).passkeys

type PasskeyProof = { password?: string; code?: string }

export const removePasskey = (id: string, proof: PasskeyProof): Promise<unknown> =>
  api.post(`${AUTH}/passkey/delete-passkey`, { id, ...proof })

export async function signInWithPasskey(): Promise<void> {
  const { startAuthentication } = await import('@simplewebauthn/browser')
  const options = await api.get<Parameters<typeof startAuthentication>[0]['optionsJSON']>(
    `${AUTH}/passkey/generate-authenticate-options`,
    own,
  )
  const { clientExtensionResults: _, ...response } = await ceremony(() => startAuthentication({ optionsJSON: options }))
  await api.post(`${AUTH}/passkey/verify-authentication`, { response }, own)
}

export async function addPasskey(name: string, proof: PasskeyProof): Promise<void> {
  const { startRegistration } = await import('@simplewebauthn/browser')
  const options = await api.post<Parameters<typeof startRegistration>[0]['optionsJSON']>(
    `${AUTH}/passkey/generate-register-options`,
    { name, ...proof },
    own,
  )
  const { clientExtensionResults: _, ...response } = await ceremony(() => startRegistration({ optionsJSON: options }))
  await api.post(`${AUTH}/passkey/verify-registration`, { response, name }, own)
}

/** Replaces the browser's errors, which quote specifications. Nearly always, the person pressed Cancel or waited too long. */
async function ceremony<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (cause) {
    const isKnown = cause instanceof Error && 'code' in cause && cause.code === 'ERROR_AUTHENTICATOR_PREVIOUSLY_REGISTERED'
    throw new ApiError({
      status: 0,
      code: 'passkey_cancelled',
      message: isKnown
        ? 'This device already has a passkey for this account.'
        : 'The passkey was not used: it was cancelled, or took too long.',
    })
  }
}
