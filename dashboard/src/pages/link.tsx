import { Button, Checkbox, Stack } from '@mantine/core'
import { type FormEvent, useEffect, useState } from 'react'
import { ApiError, api } from '../api/client.ts'
import { enterSession } from '../api/session.ts'
import type { LinkInfo } from '../api/types.ts'
import { Gate } from '../components/layout/gate.tsx'
import { TextLink } from '../components/layout/links.tsx'
import { Loading } from '../components/loading.tsx'
import { AccountFields } from '../components/people/account-fields.tsx'
import { Problem } from '../components/problem.tsx'
import { Time, useNow } from '../components/time.tsx'
import { useAction } from '../components/use-action.ts'
import { forgetLinkToken, linkToken, takeLinkToken } from '../link-token.ts'

const TITLES: Record<LinkInfo['kind'], string> = {
  claim: 'Claim your account',
  invitation: 'Accept your invitation',
  'sign-in': 'Sign in with your link',
}

export function LinkPage() {
  const [token, setToken] = useState(linkToken)
  const [info, setInfo] = useState<LinkInfo | null>(null)
  const [error, setError] = useState<unknown>(null)

  useEffect(() => {
    // Pasting a second link into the same tab changes only the fragment, which does not reload the page.
    const onHash = () => {
      takeLinkToken()
      setToken(linkToken())
    }
    window.addEventListener('hashchange', onHash)
    return () => window.removeEventListener('hashchange', onHash)
  }, [])

  useEffect(() => {
    if (!token) return
    const controller = new AbortController()
    setInfo(null)
    setError(null)
    api
      .post<LinkInfo>('/link/inspect', { token }, { keepsSession: true, signal: controller.signal })
      .then(setInfo, (cause: unknown) => {
        if (!controller.signal.aborted) setError(cause)
      })
    return () => controller.abort()
  }, [token])

  if (!token || error) return <Unusable error={error} />
  if (!info) {
    return (
      <Gate title="Your link">
        <Loading height={180} what="Checking the link" />
      </Gate>
    )
  }
  return <Accept key={token} token={token} info={info} />
}

function Unusable({ error }: { error: unknown }) {
  const isAway = error instanceof ApiError && error.code !== 'not_found' && error.code !== 'bad_request'
  return (
    <Gate title="This link cannot be used">
      {isAway ? (
        <Problem
          error={error}
          what="The link could not be checked."
          again="Check your connection, then open the link again. It has not been used."
        />
      ) : (
        <p>
          The link was already used, has expired, is incomplete, or was revoked when the password changed. A link works only once.
          Check that you opened the complete link, or ask the operator for a new one.
        </p>
      )}
      <p>
        <TextLink to="/sign-in">Sign in</TextLink>
      </p>
    </Gate>
  )
}

/** An email address can have only one account, and this link is only for that address. */
function HasAccount({ email }: { email: string }) {
  return (
    <Gate title="You already have an account">
      <p>
        <bdi>{email}</bdi> already has an account, so you do not need this invitation. <TextLink to="/sign-in">Sign in</TextLink>.
        If you cannot sign in, ask the operator for a sign-in link.
      </p>
    </Gate>
  )
}

function Accept({ token, info }: { token: string; info: LinkInfo }) {
  const now = useNow()
  const [email, setEmail] = useState(info.email ?? '')
  const [password, setPassword] = useState('')
  // Most people ask for a sign-in link because they forgot their password. Without a new one, they would soon need another link.
  const [wantsPassword, setWantsPassword] = useState(true)
  const accept = useAction(async () => {
    const credentials = wantsPassword ? { password } : {}
    const address = info.kind === 'sign-in' && !info.needsPassword ? {} : { email: email.trim() }
    await api.post('/link/accept', { token, ...address, ...credentials }, { keepsSession: true })
    forgetLinkToken()
    await enterSession()
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void accept.run()
  }
  const isTaken = accept.error instanceof ApiError && accept.error.details.reason === 'email_taken'
  if (info.email !== null && (info.hasAccount || isTaken)) return <HasAccount email={info.email} />
  return (
    <Gate title={TITLES[info.kind]}>
      <p className="small dim">
        {info.kind === 'claim' && 'This account has no owner yet. Choose how you want to sign in. '}
        {info.kind === 'sign-in' && info.email && (
          <>
            For <bdi>{info.email}</bdi>.{' '}
          </>
        )}
        The link works once and {info.expiresAt > now ? 'expires' : 'expired'} <Time at={info.expiresAt} />.
      </p>
      {info.turnsOffTwoFactor && (
        <p className="note small">Using this link turns two-factor sign-in off. You can set it up again in Settings.</p>
      )}
      <form onSubmit={submit} onChange={accept.onEdit}>
        <Stack gap="md">
          {!info.needsPassword && (
            <Checkbox
              label="Set a new password"
              description="All other sessions end. Untick this to sign in and keep the password that you have."
              checked={wantsPassword}
              onChange={(event) => setWantsPassword(event.currentTarget.checked)}
            />
          )}
          {wantsPassword && (
            <AccountFields
              email={email}
              {...(info.email === null ? { onEmail: setEmail } : {})}
              password={password}
              onPassword={setPassword}
              passwordLabel={info.needsPassword ? 'Password' : 'New password'}
            />
          )}
          <Problem
            error={accept.error}
            what="The link was not accepted."
            {...(isTaken ? { next: 'Use another email address. The link is still valid.' } : {})}
          />
          <Button type="submit" fullWidth loading={accept.isPending}>
            {info.kind === 'sign-in' && !info.needsPassword ? 'Sign in' : 'Continue'}
          </Button>
        </Stack>
      </form>
    </Gate>
  )
}
