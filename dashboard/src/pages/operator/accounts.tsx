import { Button } from '@mantine/core'
import { IconKey, IconUserPlus } from '@tabler/icons-react'
import { useInfiniteQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { accountsQuery, type OperatorAccount } from '../../api/operator.ts'
import { meQuery } from '../../api/queries.ts'
import { Amount } from '../../components/amount.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { Page } from '../../components/layout/page.tsx'
import { LoadMore } from '../../components/load-more.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { inviteCurl } from '../../text/code/snippets.ts'
import { AccessDialog, InviteDialog } from './access-dialog.tsx'
import { SearchField, useOperatorSearch } from './search-field.tsx'
import { OperatorLink } from './shell.tsx'

export function AccountsPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const { search } = useOperatorSearch()
  const query = useInfiniteQuery(accountsQuery(search))
  const [helped, setHelped] = useState<OperatorAccount | null>(null)
  const [isInviting, setInviting] = useState(false)
  const accounts = query.data?.pages.flatMap((page) => page.accounts)
  const invite = (
    <Button leftSection={<IconUserPlus size={18} aria-hidden />} onClick={() => setInviting(true)}>
      Invite someone…
    </Button>
  )
  return (
    <Page title="Accounts" actions={invite}>
      <div className="operator-tools">
        <SearchField label="Find a person or an account" placeholder="Name, email, account id or node id" />
      </div>
      {!query.data && (
        <Problem error={query.error} what="The accounts could not be loaded." onRetry={() => void query.refetch()} />
      )}
      {query.isPending && <Loading height={420} shape="list" />}
      {accounts?.length === 0 && search !== undefined && (
        <EmptyState
          art="search"
          title="No account found."
          sentence={
            <>
              No account has “<bdi>{search}</bdi>” in its name or email address, and no account or node has this id.
            </>
          }
        />
      )}
      {accounts?.length === 0 && search === undefined && (
        <EmptyState
          art="keys"
          title="No accounts yet."
          sentence="Invite someone, or yourself: whoever uses the link gets an account."
          action={invite}
          curl={inviteCurl(me.publicUrl)}
        />
      )}
      {accounts && accounts.length > 0 && (
        <ul className="card list rows" aria-label="Accounts">
          {accounts.map((account) => (
            <AccountRow key={account.id} account={account} onHelp={() => setHelped(account)} />
          ))}
        </ul>
      )}
      <LoadMore query={query} />
      {helped && <AccessDialog account={helped} onClose={() => setHelped(null)} />}
      {isInviting && <InviteDialog isOff={me.registration === 'off'} onClose={() => setInviting(false)} />}
    </Page>
  )
}

function AccountRow({ account, onHelp }: { account: OperatorAccount; onHelp: () => void }) {
  const { id, name, emails, nodes, creditSat, createdAt } = account
  return (
    <li className="row">
      <span className="row-main">
        <OperatorLink section="accounts" id={id}>
          <strong>
            <bdi>{name}</bdi>
          </strong>
        </OperatorLink>
        <br />
        <span className="small" dir="auto">
          {emails.length === 0 ? 'No owner yet' : emails.join(', ')}
        </span>
        <br />
        <span className="small dim">
          {signInWords(account)} · {nodes === 1 ? '1 node' : `${nodes} nodes`} · created <Time at={createdAt} />
        </span>
      </span>
      <span title="Balance in the ledger">
        <Amount sat={creditSat} />
      </span>
      <Button
        size="xs"
        variant="default"
        leftSection={<IconKey size={15} aria-hidden />}
        aria-label={`Give access to ${name}${emails[0] ? `, ${emails[0]}` : ''}`}
        onClick={onHelp}
      >
        Give access…
      </Button>
    </li>
  )
}

export function signInWords({ emails, signInMethods }: Pick<OperatorAccount, 'emails' | 'signInMethods'>): string {
  if (emails.length === 0) return 'Nobody can sign in'
  if (signInMethods.length === 0) return 'Signs in with a link only'
  return `Signs in with ${signInMethods.map((method) => (method === 'passkey' ? 'a passkey' : 'a password')).join(' or ')}`
}
