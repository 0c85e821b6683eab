import { Button, SegmentedControl } from '@mantine/core'
import { IconRestore, IconTrash } from '@tabler/icons-react'
import { useInfiniteQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type NodeFilter, type OperatorNode, operatorNodesQuery, undeleteNode } from '../../api/operator.ts'
import { meQuery } from '../../api/queries.ts'
import type { Drawing } from '../../components/art/illustration.tsx'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { Page } from '../../components/layout/page.tsx'
import { LoadMore } from '../../components/load-more.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { NodeStatus, Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { exact, shortened } from '../../text/format.ts'
import { SearchField, useOperatorSearch } from './search-field.tsx'
import { OperatorLink } from './shell.tsx'

export function NodesPage() {
  const { search, state } = useOperatorSearch()
  const navigate = useNavigate({ from: '/operator/{-$section}/{-$id}' })
  const isFailed = state === 'failed'
  return (
    <Page title="Nodes">
      <div className="operator-tools">
        <SearchField label="Find a node" placeholder="Name or node id" />
        <SegmentedControl
          aria-label="Which nodes"
          value={isFailed ? 'failed' : 'live'}
          onChange={(value) =>
            void navigate({
              search: (before) => ({ ...before, state: value === 'failed' ? 'failed' : undefined }),
              replace: true,
            })
          }
          data={[
            { value: 'live', label: 'All' },
            { value: 'failed', label: 'Need attention' },
          ]}
        />
      </div>
      <NodeList
        filter={{ search, state: isFailed ? 'failed' : 'live' }}
        showsAccount
        empty={
          search !== undefined
            ? 'No such node was found. It may be among the deleted nodes.'
            : isFailed
              ? 'No node needs attention: none has failed, and all that are ready respond.'
              : 'No nodes yet.'
        }
      />
    </Page>
  )
}

export function DeletedNodesPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const { search } = useOperatorSearch()
  return (
    <Page title="Deleted nodes">
      <p className="dim">
        After its deletion, the data of a node, with its money, is kept for {me.retentionDays} days. Until then you can restore
        it: it is then stopped, and its owner can start it. Nodes that were released to another installation are not listed.
      </p>
      <div className="operator-tools">
        <SearchField label="Find a deleted node" placeholder="Name or node id" />
      </div>
      <NodeList
        filter={{ search, state: 'restorable' }}
        showsAccount
        empty={search === undefined ? 'No deleted node is kept at the moment.' : 'No such deleted node is kept.'}
      />
    </Page>
  )
}

type ListProps = { filter: NodeFilter; showsAccount?: boolean; empty: string }

export function NodeList({ filter, showsAccount = false, empty }: ListProps) {
  const query = useInfiniteQuery(operatorNodesQuery(filter))
  const [chosen, setChosen] = useState<OperatorNode | null>(null)
  const nodes = query.data?.pages.flatMap((page) => page.nodes)
  return (
    <>
      {!nodes && <Problem error={query.error} what="The nodes could not be loaded." onRetry={() => void query.refetch()} />}
      {query.isPending && <Loading height={240} shape="list" />}
      {nodes?.length === 0 && <EmptyState art={artOf(filter)} title={empty} />}
      {nodes && nodes.length > 0 && (
        <ul className="card list rows" aria-label="Nodes">
          {nodes.map((node) => (
            <NodeRow key={node.id} node={node} showsAccount={showsAccount} onRestore={() => setChosen(node)} />
          ))}
        </ul>
      )}
      <LoadMore query={query} />
      {chosen && <RestoreDialog node={chosen} onClose={() => setChosen(null)} />}
    </>
  )
}

/** An empty list of failed or deleted nodes is good news, so its picture does not suggest creating a node. */
function artOf({ search, state }: NodeFilter): Drawing {
  if (search !== undefined) return 'search'
  return state === 'failed' || state === 'restorable' ? 'yard' : 'nodes'
}

type RowProps = { node: OperatorNode; showsAccount: boolean; onRestore: () => void }

function NodeRow({ node, showsAccount, onRestore }: RowProps) {
  const { id, name, accountId, accountName, host, version, phase, failureMessage, deletedAt, releasedAt, purgesAt } = node
  return (
    <li className="row">
      <span className="row-main">
        <strong>
          <bdi>{name}</bdi>
        </strong>{' '}
        <span className="small mono dim">{id}</span>
        <br />
        <span className="small">
          {showsAccount && (
            <>
              Account{' '}
              <OperatorLink section="accounts" id={accountId}>
                <bdi>{accountName}</bdi>
              </OperatorLink>{' '}
              ·{' '}
            </>
          )}
          {version === null ? 'has not run yet' : `version ${version}`} · host{' '}
          <span className="mono" title={host}>
            {shortened(host, 6)}
          </span>
          {deletedAt === null && ` · last seen ${PHASES[phase] ?? phase}`}
        </span>
        {deletedAt !== null && (
          <span className="small">
            <br />
            Deleted <Time at={deletedAt} />
            {purgesAt !== null && (
              <>
                {' '}
                · its data is removed for good <Time at={purgesAt} />, on {exact(purgesAt)}
              </>
            )}
            {releasedAt !== null && ' · released to another installation'}
          </span>
        )}
        {failureMessage !== null && deletedAt === null && <span className="small operator-failure">{failureMessage}</span>}
      </span>
      {deletedAt === null ? (
        <NodeStatus node={{ ...node, operation: node.operation as never }} />
      ) : (
        <Status word="Deleted" tone="idle" icon={IconTrash} />
      )}
      {node.isRestorable && (
        <Button
          size="xs"
          variant="default"
          leftSection={<IconRestore size={15} aria-hidden />}
          aria-label={`Restore ${name}`}
          onClick={onRestore}
        >
          Restore…
        </Button>
      )}
    </li>
  )
}

/** What the service last observed, in words. Other phases are shown as they are. */
const PHASES: Record<string, string> = {
  running: 'running',
  exited: 'not running',
  absent: 'not running',
  stopping: 'stopping',
  starting: 'starting',
  restarting: 'restarting',
  waiting_for_peer: 'waiting for its peer',
  unreachable: 'not reachable',
  hung: 'not responding',
  data_lost: 'without its data',
  unknown: 'in an unknown state',
}

function RestoreDialog({ node, onClose }: { node: OperatorNode; onClose: () => void }) {
  const restore = useAction(async () => {
    await undeleteNode(node.id)
    announce(
      <>
        <bdi>{node.name}</bdi> is restored
      </>,
    )
    onClose()
  })
  return (
    <ConfirmDialog
      title={
        <>
          Restore <bdi>{node.name}</bdi>?
        </>
      }
      verb="Restore node"
      isPending={restore.isPending}
      onConfirm={() => void restore.run()}
      onCancel={onClose}
    >
      <p>
        The node returns to the account <bdi>{node.accountName}</bdi> with its data, money and keys. It is stopped: its owner
        decides when to start it, and is not charged until then.
      </p>
      <Problem error={restore.error} what="The node was not restored." again="Reload the page to see whether it is restored." />
    </ConfirmDialog>
  )
}
