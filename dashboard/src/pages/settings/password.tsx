import { Button, PasswordInput, Stack } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { changePassword } from '../../api/auth.ts'
import { queryClient } from '../../api/queries.ts'
import { sessionsQuery } from '../../api/settings.ts'
import { announce } from '../../components/layout/announcer.tsx'
import { SHORTEST_PASSWORD } from '../../components/people/account-fields.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'

export function Password({ email }: { email: string }) {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const change = useAction(async () => {
    await changePassword(current, next)
    setCurrent('')
    setNext('')
    announce('Password changed. All other sessions have been signed out.')
    await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey })
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void change.run()
  }
  return (
    <section className="card" aria-labelledby="password">
      <h2 id="password">Password</h2>
      <form onSubmit={submit} onChange={change.onEdit}>
        <Stack gap="md" maw={400}>
          {/* Password managers need the email address to know which entry to update. */}
          <input type="hidden" name="email" autoComplete="username" value={email} readOnly />
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            required
            withAsterisk={false}
            value={current}
            onChange={(event) => setCurrent(event.currentTarget.value)}
          />
          <PasswordInput
            label="New password"
            description={`At least ${SHORTEST_PASSWORD} characters, and not a common password. All other sessions are signed out, and open sign-in links stop working.`}
            autoComplete="new-password"
            required
            withAsterisk={false}
            minLength={SHORTEST_PASSWORD}
            maxLength={128}
            value={next}
            onChange={(event) => setNext(event.currentTarget.value)}
          />
          <Problem error={change.error} what="The password was not changed." />
          <div>
            <Button type="submit" variant="default" loading={change.isPending}>
              Change password
            </Button>
          </div>
        </Stack>
      </form>
    </section>
  )
}
