import { Button } from '@mantine/core'
import { IconCoins, IconKey } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { accountActivityQuery, accountQuery, type OperatorAccountDetail } from '../../api/operator.ts'
import { Amount } from '../../components/amount.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { Id } from '../../components/id.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { sats, satsOfMsat } from '../../text/format.ts'
import { lasting } from '../../text/runway.ts'
import { actorOf, sentenceOf } from '../../text/sentences.ts'
import { AccessDialog } from './access-dialog.tsx'
import { signInWords } from './accounts.tsx'
import { CreditDialog } from './credit-dialog.tsx'
import { NodeList } from './nodes.tsx'
import { OperatorLink } from './shell.tsx'

export function AccountPage({ id }: { id: string }) {
  const account = useQuery(accountQuery(id))
  const { data } = account
  return (
    <Page
      title={data?.name ?? 'Account'}
      heading={<bdi>{data?.name ?? 'Account'}</bdi>}
      actions={<OperatorLink section="accounts">All accounts</OperatorLink>}
    >
      {!data && <Problem error={account.error} what="The account could not be loaded." onRetry={() => void account.refetch()} />}
      {account.isPending && <Loading height={420} />}
      {data && <Account account={data} />}
    </Page>
  )
}

function Account({ account }: { account: OperatorAccountDetail }) {
  const [open, setOpen] = useState<'access' | 'credit' | null>(null)
  const close = () => setOpen(null)
  const { id, emails, createdAt, creditLeftSat, creditSat, runwaySeconds, stopsAt } = account
  return (
    <div className="stack">
      <div className="cards">
        <section className="card" aria-labelledby="access">
          <h2 id="access">Access</h2>
          <dl className="facts">
            <dt>Owner</dt>
            <dd dir="auto">{emails.length === 0 ? 'No owner yet' : emails.join(', ')}</dd>
            <dt>Sign-in</dt>
            <dd>{signInWords(account)}</dd>
            <dt>Created</dt>
            <dd>
              <Time at={createdAt} />
            </dd>
            <dt>Account id</dt>
            <dd>
              <Id id={id} /> <CopyButton text={id} label="Copy account id" />
            </dd>
          </dl>
          <Button mt="md" leftSection={<IconKey size={18} aria-hidden />} onClick={() => setOpen('access')}>
            Give access…
          </Button>
        </section>
        <section className="card" aria-labelledby="credit">
          <h2 id="credit">Credit</h2>
          <div className="figure">
            <Amount sat={creditLeftSat} />
          </div>
          <p className="small dim">
            {runwaySeconds === null ? 'Nothing is being charged now.' : `Lasts ${lasting(runwaySeconds)} at the current rate.`}{' '}
            {creditLeftSat !== creditSat && `The ledger shows ${sats(creditSat)}: the current hour is not in it yet.`}
          </p>
          {stopsAt !== null && (
            <p className="note small">
              The credit is used up. The nodes of this account will be stopped <Time at={stopsAt} />.
            </p>
          )}
          <Button variant="default" leftSection={<IconCoins size={18} aria-hidden />} onClick={() => setOpen('credit')}>
            Add or deduct credit…
          </Button>
        </section>
      </div>
      <section aria-labelledby="nodes">
        <h2 id="nodes" className="section-title">
          Nodes
        </h2>
        <NodeList filter={{ accountId: id }} empty="This account has never had a node." />
      </section>
      <Activity id={id} />
      {open === 'access' && <AccessDialog account={account} onClose={close} />}
      {open === 'credit' && <CreditDialog account={account} onClose={close} />}
    </div>
  )
}

const MOST_SHOWN = 100

function Activity({ id }: { id: string }) {
  const activity = useQuery(accountActivityQuery(id))
  const rows = activity.data?.slice(0, MOST_SHOWN)
  return (
    <section aria-labelledby="activity">
      <h2 id="activity" className="section-title">
        Activity
      </h2>
      {!rows && (
        <Problem error={activity.error} what="The activity could not be loaded." onRetry={() => void activity.refetch()} />
      )}
      {activity.isPending && <Loading height={240} shape="list" />}
      {rows && (
        <ul className="card list rows" aria-label="Activity">
          {rows.map((row, place) => {
            const { before, after, namesTarget } = sentenceOf({ ...row, id: place })
            const { amountMsat, reason } = row.detail
            const actor = row.actor.startsWith('person_') ? 'the owner' : actorOf(row.actor, null)
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: entries have no id, and the list is only replaced as a whole
              <li key={place} className="row">
                <span className="row-main">
                  {before}
                  {row.target && namesTarget && <span className="mono">{row.target}</span>}
                  {after}
                  {typeof amountMsat === 'number' && `: ${satsOfMsat(Math.abs(amountMsat))}`}
                  {typeof reason === 'string' && (
                    <>
                      {' '}
                      (<bdi>{reason}</bdi>)
                    </>
                  )}{' '}
                  {actor && <span className="dim">by {actor}</span>}
                </span>
                <span className="small dim">
                  <Time at={row.at} />
                </span>
              </li>
            )
          })}
        </ul>
      )}
      {activity.data && activity.data.length > MOST_SHOWN && (
        <p className="small dim">Only the latest {MOST_SHOWN} entries are shown.</p>
      )}
    </section>
  )
}
