import { useQueries, useSuspenseQuery } from '@tanstack/react-query'
import { meQuery } from '../../api/queries.ts'
import { deletionQuery, securityQuery, sessionsQuery } from '../../api/settings.ts'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { DeleteAccount } from './delete-account.tsx'
import { Display } from './display.tsx'
import { Passkeys, passkeysQuery } from './passkeys.tsx'
import { Password } from './password.tsx'
import { Sessions } from './sessions.tsx'
import { TwoFactor } from './two-factor.tsx'
import { You } from './you.tsx'

export function SettingsPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const { user, account } = me
  // Shown together: sections that appear one by one would move the buttons below them while someone clicks.
  const isPending = useQueries({ queries: [securityQuery, passkeysQuery, sessionsQuery, deletionQuery] }).some(
    (one) => one.isPending,
  )
  // The session has just ended, and the sign-in page is about to be shown.
  if (!user || !account) return null
  return (
    <Page title="Settings">
      <div className="stack">
        <You user={user} account={account} />
        <Display />
        <Password email={user.email} />
        {isPending ? (
          <Loading height={900} />
        ) : (
          <>
            <TwoFactor user={user} />
            <Passkeys user={user} origins={me.origins} />
            <Sessions />
            <DeleteAccount user={user} account={account} retentionDays={me.retentionDays} />
          </>
        )}
      </div>
    </Page>
  )
}
