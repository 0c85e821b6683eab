import '../../styles/operator.css'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { type ComponentType, useEffect } from 'react'
import { endOperatorSession, operatorSessionQuery } from '../../api/operator.ts'
import { meQuery } from '../../api/queries.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Ribbon } from '../../components/layout/ribbon.tsx'
import { Problem } from '../../components/problem.tsx'
import { AccountPage } from './account.tsx'
import { AccountsPage } from './accounts.tsx'
import { BackgroundPage } from './background.tsx'
import { InstallationPage } from './installation.tsx'
import { DeletedNodesPage, NodesPage } from './nodes.tsx'
import { OperatorLink, OperatorShell } from './shell.tsx'
import { NoToken, OperatorSignIn } from './sign-in.tsx'
import { StatisticsPage } from './statistics.tsx'

const SECTIONS: Record<string, ComponentType> = {
  accounts: AccountsPage,
  nodes: NodesPage,
  deleted: DeletedNodesPage,
  installation: InstallationPage,
  statistics: StatisticsPage,
  background: BackgroundPage,
}

export function OperatorPages() {
  const { data: me } = useSuspenseQuery(meQuery)
  const session = useQuery(operatorSessionQuery)
  // Dialogs are outside of this component's element, so the colors are set on the document.
  useEffect(() => {
    document.documentElement.dataset.area = 'operator'
    return () => {
      delete document.documentElement.dataset.area
    }
  }, [])
  const expiresAt = session.data?.expiresAt ?? null
  // A forgotten tab must not keep showing customers' data: without this timer, nothing would change until somebody returns to the tab.
  useEffect(() => {
    if (expiresAt === null) return
    const timer = setTimeout(endOperatorSession, Math.max(0, expiresAt * 1000 - Date.now()))
    return () => clearTimeout(timer)
  }, [expiresAt])
  return (
    <>
      {session.data?.isSignedIn ? (
        <OperatorShell me={me} expiresAt={session.data.expiresAt}>
          <Section />
        </OperatorShell>
      ) : (
        <>
          {me.isSandbox && !session.data && <Ribbon />}
          {session.data?.isConfigured === true && <OperatorSignIn />}
          {session.data?.isConfigured === false && <NoToken />}
          {!session.data && session.error && (
            <Page title="Operator">
              <Problem error={session.error} what="This page could not be loaded." onRetry={() => void session.refetch()} />
            </Page>
          )}
        </>
      )}
    </>
  )
}

function Section() {
  const { section = 'accounts', id } = useParams({ from: '/operator/{-$section}/{-$id}' })
  if (section === 'accounts' && id !== undefined) return <AccountPage key={id} id={id} />
  const Found = id === undefined ? SECTIONS[section] : undefined
  if (Found) return <Found key={section} />
  return (
    <Page title="Page not found">
      <EmptyState
        art="signpost"
        title="There is no page at this address."
        action={<OperatorLink section="accounts">Go to the accounts</OperatorLink>}
      />
    </Page>
  )
}
