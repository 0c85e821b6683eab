import { Button, Group, NumberInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { liveQuery, queryClient } from '../../api/queries.ts'
import type { DashboardNode, Me, NodeLive } from '../../api/types.ts'
import { Amount, Count } from '../../components/amount.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { ButtonLink } from '../../components/layout/links.tsx'
import { Loading } from '../../components/loading.tsx'
import { NodeActions } from '../../components/node-actions.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { sats } from '../../text/format.ts'

type Props = { node: DashboardNode; me: Me }

export function NodeOverview({ node, me }: Props) {
  return (
    <div className="stack">
      <Condition node={node} />
      <div className="two">
        <section className="card" aria-labelledby="money">
          <h2 id="money">Money</h2>
          <Money node={node} isSandbox={me.isSandbox} />
        </section>
        <section className="card" aria-labelledby="about">
          <h2 id="about">About</h2>
          <dl className="facts">
            <dt>Endpoint</dt>
            <dd>
              <span className="mono">{node.endpointUrl}</span> <CopyButton text={node.endpointUrl} label="Copy endpoint" />
            </dd>
            <dt>Id</dt>
            <dd>
              <span className="mono">{node.id}</span> <CopyButton text={node.id} label="Copy node id" />
            </dd>
            <dt>Dashboard may</dt>
            <dd>{node.accessMode === 'full' ? 'read, create invoices and send' : 'read and create invoices'}</dd>
            <dt>Liquidity</dt>
            <dd>{node.autoLiquidity.replace('m', ' million sat at a time')}</dd>
            <dt>Created</dt>
            <dd>
              <Time at={node.createdAt} />
            </dd>
          </dl>
        </section>
      </div>
      {me.isSandbox && node.status === 'ready' && <Faucet node={node} />}
    </div>
  )
}

/** What is the matter, calmly, and the next step. Nothing when all is well. */
function Condition({ node }: { node: DashboardNode }) {
  if (node.operation) return <p className="note">Something is being done with this node. This page shows when it is finished.</p>
  switch (node.status) {
    case 'ready':
      return null
    case 'provisioning':
      return <p className="note">The node is being set up. That takes a few seconds; this page shows when it is ready.</p>
    case 'stopped':
      return (
        <div className="note">
          <p>The node is stopped. Its money and data are kept, it costs nothing, and it cannot receive.</p>
          <NodeActions node={node} />
        </div>
      )
    case 'failed':
      return (
        <div className="note">
          <p>
            {node.failureMessage ?? 'The node did not come up.'} Its money and data are kept. It is tried again by itself; you can
            also start it now.
          </p>
          <NodeActions node={node} />
        </div>
      )
  }
}

function Money({ node, isSandbox }: { node: DashboardNode; isSandbox: boolean }) {
  const { data: live, error, refetch } = useQuery({ ...liveQuery(node.id), enabled: node.status === 'ready' })
  if (node.status === 'provisioning') return <p className="money">The balance is shown as soon as the node is ready.</p>
  if (node.status !== 'ready') {
    return (
      <p className="money">
        The balance is not known while the node is not running. It is not lost: it is shown again when the node is ready.
      </p>
    )
  }
  if (!live && error) return <Problem error={error} what="The node could not be asked." onRetry={() => void refetch()} />
  if (!live) return <Loading height={170} />
  return <Balance live={live} isSandbox={isSandbox} />
}

function Balance({ live, isSandbox }: { live: NodeLive; isSandbox: boolean }) {
  const { channels } = live
  return (
    <div className="money" aria-live="polite">
      {live.balanceSat === null ? (
        <p data-testid="balance-unknown">
          {live.isReachable
            ? 'The balance is not known while its channels are offline. The money is still there; it is shown when they are back.'
            : 'The node does not answer at the moment, so its balance is not known. The money is still there. The service starts a node that has died again by itself.'}
        </p>
      ) : (
        <>
          <div className="figure" data-testid="balance">
            <Amount sat={live.balanceSat} />
          </div>
          <p className="small dim figure-note">Balance: yours to send.</p>
        </>
      )}
      {live.feeCreditSat !== null && live.feeCreditSat > 0 && (
        <p data-testid="fee-credit">
          <strong>
            <Amount sat={live.feeCreditSat} /> fee credit.
          </strong>{' '}
          Small first payments are kept for the fees of the first channel. They count as received, pay those fees later, and
          cannot be sent or paid out.
        </p>
      )}
      {live.balanceSat === 0 && !live.feeCreditSat && channels?.total === 0 && (
        <p className="small">
          The node has no channel yet. It opens one by itself with the first payment that is large enough to pay for it.
        </p>
      )}
      <p className="small dim">
        {channels === null
          ? 'Channels not known'
          : channels.total === 0
            ? 'No channel yet'
            : `${channels.usable} of ${channels.total} channel${channels.total === 1 ? '' : 's'} usable`}
        {live.blockHeight !== null && (
          <>
            {' · block '}
            <Count of={live.blockHeight} />
          </>
        )}
        {live.version !== null && ` · version ${live.version}`}
      </p>
      <Group gap="xs">
        {/* Who has just made a node came here for this, and would look for it among the tabs. */}
        {isSandbox && <ButtonLink to="/gateway/try-it">Try a paid request</ButtonLink>}
        <ButtonLink to="." search={{ tab: 'invoice' }} variant={isSandbox ? 'default' : 'filled'}>
          Create an invoice
        </ButtonLink>
        <ButtonLink to="." search={{ tab: 'connect' }} variant="default">
          Connect
        </ButtonLink>
      </Group>
    </div>
  )
}

function Faucet({ node }: { node: DashboardNode }) {
  const [amount, setAmount] = useState<number | string>(100_000)
  const fund = useAction(async () => {
    await api.post(`/sandbox/nodes/${node.id}/fund`, { amountSat: Number(amount) })
    announce(`${sats(Number(amount))} of play money are on their way`)
    await queryClient.invalidateQueries({ queryKey: ['nodes', node.id] })
  })
  return (
    <section className="card" aria-labelledby="faucet">
      <h2 id="faucet">Play money</h2>
      <p className="small dim">This is the sandbox: give the node as much as you like to try things with.</p>
      <Group align="flex-end">
        <NumberInput label="Amount in sat" min={1} value={amount} onChange={setAmount} w={180} />
        <Button variant="default" loading={fund.isPending} disabled={!(Number(amount) > 0)} onClick={() => void fund.run()}>
          Fund this node
        </Button>
      </Group>
      <Problem error={fund.error} what="The node was not funded." />
    </section>
  )
}
