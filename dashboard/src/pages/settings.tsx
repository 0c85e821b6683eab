import { Button, PasswordInput, SegmentedControl, Stack } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { changePassword, signOutEverywhere } from '../api/auth.ts'
import { meQuery } from '../api/queries.ts'
import { leaveSession } from '../api/session.ts'
import { ConfirmDialog } from '../components/dialogs/confirm-dialog.tsx'
import { announce } from '../components/layout/announcer.tsx'
import { Page } from '../components/layout/page.tsx'
import { useColorScheme } from '../components/layout/theme-toggle.tsx'
import { SHORTEST_PASSWORD } from '../components/people/account-fields.tsx'
import { Passkeys } from '../components/people/passkeys.tsx'
import { Problem } from '../components/problem.tsx'
import { useAction } from '../components/use-action.ts'

export function SettingsPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  return (
    <Page title="Settings">
      <div className="stack">
        <section className="card" aria-labelledby="you">
          <h2 id="you">You</h2>
          <dl className="facts">
            <dt>Email</dt>
            <dd>{me.user?.email}</dd>
            <dt>Account</dt>
            <dd>
              {me.account?.name} <span className="mono dim">{me.account?.id}</span>
            </dd>
          </dl>
        </section>
        <Theme />
        <Password email={me.user?.email ?? ''} />
        <Everywhere />
        <Passkeys origins={me.origins} />
      </div>
    </Page>
  )
}

function Theme() {
  const { colorScheme, setColorScheme } = useColorScheme()
  return (
    <section className="card" aria-labelledby="theme">
      <h2 id="theme">Theme</h2>
      <SegmentedControl
        aria-label="Theme"
        value={colorScheme}
        onChange={(value) => setColorScheme(value === 'light' || value === 'dark' ? value : 'auto')}
        data={[
          { value: 'auto', label: 'Same as system' },
          { value: 'light', label: 'Light' },
          { value: 'dark', label: 'Dark' },
        ]}
      />
    </section>
  )
}

function Password({ email }: { email: string }) {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const change = useAction(async () => {
    await changePassword(current, next)
    setCurrent('')
    setNext('')
    announce('Password changed. All other sessions have been signed out.')
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

function Everywhere() {
  const [isAsking, setAsking] = useState(false)
  const end = useAction(async () => {
    await signOutEverywhere()
    leaveSession(true)
  })
  return (
    <section className="card" aria-labelledby="everywhere">
      <h2 id="everywhere">Sessions</h2>
      <p className="small dim">Use this if you are still signed in on a device you no longer have.</p>
      <Button variant="default" onClick={() => setAsking(true)}>
        Sign out everywhere…
      </Button>
      {isAsking && (
        <ConfirmDialog
          title="Sign out everywhere?"
          verb="Sign out everywhere"
          isPending={end.isPending}
          onCancel={() => setAsking(false)}
          onConfirm={() => void end.run()}
        >
          <p>
            All your sessions end, including this one, and open sign-in links stop working. API keys and nodes are not affected.
          </p>
          <Problem error={end.error} what="Signing out everywhere failed." />
        </ConfirmDialog>
      )}
    </section>
  )
}
