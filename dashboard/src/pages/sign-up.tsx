import { Button, Stack } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { signUp } from '../api/auth.ts'
import { ApiError } from '../api/client.ts'
import { meQuery } from '../api/queries.ts'
import { enterSession } from '../api/session.ts'
import { Gate } from '../components/layout/gate.tsx'
import { TextLink } from '../components/layout/links.tsx'
import { AccountFields } from '../components/people/account-fields.tsx'
import { Problem } from '../components/problem.tsx'
import { useAction } from '../components/use-action.ts'

export function SignUp() {
  const { data: me } = useSuspenseQuery(meQuery)
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const create = useAction(async () => {
    await signUp(email.trim(), password)
    await enterSession()
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void create.run()
  }
  if (me.user && !create.isPending) return <Navigate to="/" replace />
  if (me.registration !== 'open') return <Navigate to="/sign-in" replace />

  return (
    <Gate title="Create an account">
      <form onSubmit={submit} onChange={create.onEdit}>
        <Stack gap="md">
          <AccountFields email={email} onEmail={setEmail} password={password} onPassword={setPassword} />
          <Problem
            error={create.error}
            what="The account was not created."
            again="Check your connection and try again. If you already have an account, sign in."
            {...nextOf(create.error)}
          />
          <Button type="submit" fullWidth loading={create.isPending}>
            Create account
          </Button>
        </Stack>
      </form>
      {me.hasUnclaimedAccount && (
        <p className="small dim">
          Did you just install this service? This creates another account, not the first one, to which the API key in{' '}
          <code>first-run.json</code> belongs. To get that one, open the <code>claimUrl</code> in the same file.
        </p>
      )}
      <p className="small dim">
        Already have an account? <TextLink to="/sign-in">Sign in</TextLink>.
      </p>
    </Gate>
  )
}

/** The usual advice to correct the input would be wrong: an account with this email address already exists. */
const nextOf = (error: unknown) =>
  error instanceof ApiError && error.details.reason === 'email_taken'
    ? {
        next: (
          <>
            <TextLink to="/sign-in">Sign in</TextLink> with it, or use another email address.
          </>
        ),
      }
    : {}
