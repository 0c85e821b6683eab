import { queryOptions } from '@tanstack/react-query'
import type { AccountDeletion, Security, TwoFactorSetup } from '../../../contract/src/dashboard/settings.ts'
import { signInWithPasskey } from './auth.ts'
import { api } from './client.ts'
import { meQuery, queryClient } from './queries.ts'
import { enterSession } from './session.ts'
import type { Passkey, Session } from './types.ts'

export type { AccountDeletion, Security, TwoFactorSetup }
export type SeenSession = Session & { lastSeenAt: number }

export const securityQuery = queryOptions({
  queryKey: ['security'],
  queryFn: ({ signal }) => api.get<Security>('/security', { signal }),
  // A passkey counts as recent for ten minutes.
  refetchInterval: ({ state: { data } }) => (data?.hasRecentPasskey ? 30_000 : false),
})

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: async ({ signal }) => (await api.get<{ sessions: SeenSession[] }>('/auth/list-sessions', { signal })).sessions,
})

export const deletionQuery = queryOptions({
  queryKey: ['account', 'deletion'],
  queryFn: ({ signal }) => api.get<AccountDeletion>('/account/deletion', { signal }),
  staleTime: 0,
})

type Proof = { password?: string }

export const changeEmail = (email: string, proof: Proof): Promise<unknown> => api.post('/security/email', { email, ...proof })
export const renameAccount = (name: string): Promise<unknown> => api.patch('/account', { name })
export const endSession = (id: string): Promise<void> => api.delete(`/security/sessions/${encodeURIComponent(id)}`)
export const endOtherSessions = (): Promise<unknown> => api.post('/auth/revoke-other-sessions')
export const renamePasskey = (id: string, name: string): Promise<Passkey> =>
  api.post('/auth/passkey/update-passkey', { id, name })
export const beginTwoFactor = (proof: Proof): Promise<TwoFactorSetup> => api.post('/security/two-factor', proof)
export const confirmTwoFactor = (code: string): Promise<{ recoveryCodes: string[] }> =>
  api.post('/security/two-factor/confirm', { code })
export const endTwoFactor = (code: string): Promise<unknown> => api.post('/security/two-factor/off', { code })
export const replaceRecoveryCodes = (code: string): Promise<{ recoveryCodes: string[] }> =>
  api.post('/security/recovery-codes', { code })
export const deleteAccount = (name: string, proof: Proof): Promise<unknown> => api.post('/account/deletion', { name, ...proof })

/** Begins a new session with a passkey, in place of this one, so that the next changes need no password. */
export async function confirmWithPasskey(userId: string): Promise<void> {
  const before = (await queryClient.fetchQuery(sessionsQuery)).find(({ isCurrent }) => isCurrent)
  await signInWithPasskey()
  const me = await queryClient.fetchQuery({ ...meQuery, staleTime: 0 })
  // The passkey belongs to another person, who is signed in now. Nothing of this page may stay.
  if (me.user?.id !== userId) return enterSession()
  if (before) await endSession(before.id)
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: securityQuery.queryKey }),
    queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey }),
  ])
}
