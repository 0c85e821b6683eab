import { Button, PasswordInput, Stack, TextInput } from '@mantine/core'
import { IconFingerprint } from '@tabler/icons-react'
import { useSuspenseQuery } from '@tanstack/react-query'
import { Navigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { ApiError } from '../api.ts'
import { canUsePasskeys, signIn, signInWithPasskey } from '../auth.ts'
import { useAction } from '../components/action.ts'
import { Gate } from '../components/gate.tsx'
import { TextLink } from '../components/links.tsx'
import { Problem } from '../components/problem.tsx'
import { meQuery } from '../queries.ts'
import { enterSession } from '../session.ts'

export function SignIn() {
  const { data: me } = useSuspenseQuery(meQuery)
  const { next } = useSearch({ from: '/gate/sign-in' })
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const byPassword = useAction(async () => {
    byPasskey.clear()
    await signIn(email.trim(), password)
    await enterSession(next)
  })
  const byPasskey = useAction(async () => {
    byPassword.clear()
    await signInWithPasskey()
    await enterSession(next)
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void byPassword.run()
  }
  if (me.user && !byPassword.isPending && !byPasskey.isPending) return <Navigate to="/" replace />

  return (
    <Gate title="Sign in">
      <form onSubmit={submit}>
        <Stack gap="md">
          <TextInput
            label="E-mail"
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
          <Problem
            error={byPassword.error ?? byPasskey.error}
            what="You are not signed in."
            again="Check your connection and try again."
            {...nextOf(byPassword.error)}
          />
          <Button type="submit" fullWidth loading={byPassword.isPending}>
            Sign in
          </Button>
          {canUsePasskeys() && (
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
      <p className="small dim">
        {me.registration === 'open' && (
          <>
            New here? <TextLink to="/sign-up">Create an account</TextLink>.{' '}
          </>
        )}
        {me.registration === 'invite' && 'New accounts need an invitation link. '}
        Forgotten your password? Ask the operator for a sign-in link.
      </p>
      {me.isSandbox && (
        <p className="small dim">
          Is this service yours, and new? Its first account waits for you: open the link <code>claimUrl</code> in the file{' '}
          <code>first-run.json</code> that it named when it started.
        </p>
      )}
    </Gate>
  )
}

/** The usual advice for a 401 is to sign in, which is what was being done. */
const nextOf = (error: unknown) =>
  error instanceof ApiError && error.status === 401
    ? { next: 'Check both and try again. If you have forgotten the password, ask the operator for a sign-in link.' }
    : {}
