import { Button, PasswordInput, Stack, TextInput } from '@mantine/core'
import { IconFingerprint } from '@tabler/icons-react'
import { useSuspenseQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { type FormEvent, useEffect, useState } from 'react'
import { canUsePasskeys, signIn, signInWithPasskey } from '../api/auth.ts'
import { ApiError, isWrongOrigin } from '../api/client.ts'
import { meQuery } from '../api/queries.ts'
import { enterSession, goOn, hasSessionEnded } from '../api/session.ts'
import { Gate } from '../components/layout/gate.tsx'
import { TextLink } from '../components/layout/links.tsx'
import { CodeInput } from '../components/people/code-input.tsx'
import { ForgottenPassword } from '../components/people/forgotten-password.tsx'
import { PasskeysElsewhere } from '../components/people/passkeys-elsewhere.tsx'
import { Problem } from '../components/problem.tsx'
import { useAction } from '../components/use-action.ts'

export function SignIn() {
  const { data: me } = useSuspenseQuery(meQuery)
  const { next } = useSearch({ from: '/gate/sign-in' })
  const [wasSignedOut] = useState(hasSessionEnded)
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [needsCode, setNeedsCode] = useState(false)
  const [code, setCode] = useState('')
  const byPassword = useAction(async () => {
    byPasskey.clear()
    try {
      await signIn(email.trim(), password, needsCode ? code : undefined)
    } catch (error) {
      if (reasonOf(error) === 'code_required') return setNeedsCode(true)
      // A wrong code is never correct later, so the person has to type another one.
      if (reasonOf(error) === 'wrong_code') setCode('')
      throw error
    }
    await enterSession(next)
  })
  const byPasskey = useAction(async () => {
    byPassword.clear()
    await signInWithPasskey()
    await enterSession(next)
  })
  const startOver = () => {
    byPassword.clear()
    setNeedsCode(false)
    setCode('')
    setPassword('')
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void byPassword.run()
  }
  const isSignedIn = Boolean(me.user) && !byPassword.isPending && !byPasskey.isPending
  // This also runs right after signing in, while the page at `next` is loading. Any other destination would replace it.
  useEffect(() => {
    if (isSignedIn) goOn(next)
  }, [isSignedIn, next])
  if (isSignedIn) return null

  return (
    <Gate title="Sign in">
      {wasSignedOut && (
        <p className="note small" role="status">
          <strong>You were signed out.</strong> Your session expired, or was ended from another window or device by signing out or
          changing the password. {next && 'After signing in, you continue where you left off.'}
        </p>
      )}
      <form onSubmit={submit} onChange={byPassword.onEdit}>
        <Stack gap="md">
          {needsCode ? (
            <>
              <p className="small dim">
                The password is correct. Two-factor sign-in is on for <bdi>{email.trim()}</bdi>.
              </p>
              <CodeInput value={code} onChange={setCode} isFocused />
            </>
          ) : (
            <>
              <TextInput
                label="Email"
                type="email"
                name="email"
                autoComplete="username webauthn"
                required
                withAsterisk={false}
                value={email}
                onChange={(event) => setEmail(event.currentTarget.value)}
              />
              <PasswordInput
                label="Password"
                name="password"
                autoComplete="current-password"
                required
                withAsterisk={false}
                value={password}
                onChange={(event) => setPassword(event.currentTarget.value)}
              />
            </>
          )}
          <Problem
            error={byPassword.error ?? byPasskey.error}
            what="You are not signed in."
            again="Check your connection and try again."
            {...(byPasskey.error ? nextOfPasskey(byPasskey.error) : nextOf(byPassword.error))}
          />
          <Button type="submit" fullWidth loading={byPassword.isPending}>
            Sign in
          </Button>
          {needsCode && (
            <Button variant="subtle" onClick={startOver}>
              Start over
            </Button>
          )}
          {canUsePasskeys() && !needsCode && (
            <Button
              variant="default"
              fullWidth
              leftSection={<IconFingerprint size={18} aria-hidden />}
              loading={byPasskey.isPending}
              onClick={() => void byPasskey.run()}
            >
              Sign in with a passkey
            </Button>
          )}
        </Stack>
      </form>
      <PasskeysElsewhere origins={me.origins} path="/dashboard/sign-in">
        {(there) => <p className="small dim">To use a passkey, sign in at {there}.</p>}
      </PasskeysElsewhere>
      {me.registration !== 'off' && (
        <p className="small dim">
          {me.registration === 'open' ? (
            <>
              New here? <TextLink to="/sign-up">Create an account</TextLink>.
            </>
          ) : (
            'To create an account, you need an invitation link.'
          )}
        </p>
      )}
      <ForgottenPassword email={email} tokenFile={me.operatorTokenFile} />
      {me.operatorTokenFile !== null && (
        <p className="small dim">
          Do you operate this service?{' '}
          <TextLink to="/operator/{-$section}/{-$id}" params={{ section: undefined, id: undefined }}>
            Sign in as the operator
          </TextLink>
          .
        </p>
      )}
      {me.hasUnclaimedAccount && (
        <p className="small dim">
          Did you just install this service? Its first account has no owner yet. Open the <code>claimUrl</code> in the file{' '}
          <code>first-run.json</code>, whose path the service printed when it started.
          {me.registration === 'open' && ' If you create an account instead, you get a different one.'}
        </p>
      )}
    </Gate>
  )
}

const reasonOf = (error: unknown): unknown => (error instanceof ApiError ? error.details.reason : undefined)

/** The usual advice for a 401 is to sign in, which does not help here. */
function nextOf(error: unknown): { next?: string } {
  if (!(error instanceof ApiError) || isWrongOrigin(error)) return {}
  if (reasonOf(error) === 'wrong_code') return { next: '' }
  if (error.status === 401) return { next: 'Check your email address and password, then try again.' }
  return error.status === 429 ? { next: `${error.message} You can still sign in with a passkey or a sign-in link.` } : {}
}

/** The message of a refusal already says what to do. */
const nextOfPasskey = (error: unknown): { next?: string } =>
  error instanceof ApiError && error.status === 401 && !isWrongOrigin(error) ? { next: '' } : {}
