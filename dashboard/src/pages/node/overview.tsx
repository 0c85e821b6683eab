import { Button, Group, NumberInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { liveQuery, queryClient } from '../../api/queries.ts'
import type { DashboardNode, Me, NodeLive } from '../../api/types.ts'
import { Amount, Count } from '../../components/amount.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { Id } from '../../components/id.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { ButtonLink, TextLink } from '../../components/layout/links.tsx'
import { Loading } from '../../components/loading.tsx'
import { NodeActions } from '../../components/node-actions.tsx'
import { Problem } from '../../components/problem.tsx'
import { Received } from '../../components/received.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { duration, exact, sats } from '../../text/format.ts'
import { hasUpdate } from '../../text/updates.ts'
import { balanceNote } from './balance-note.ts'
import { Receiving } from './receiving.tsx'

type Props = { node: DashboardNode; me: Me }

export function NodeOverview({ node, me }: Props) {
  return (
    <div className="stack">
      <Condition node={node} />
      <div className="two wide-last">
        <section className="card" aria-labelledby="money">
          <h2 id="money">Money</h2>
          <div className={node.status === 'ready' ? 'money-body' : undefined}>
            <Money node={node} isSandbox={me.isSandbox} />
          </div>
        </section>
        <Received nodeId={node.id} since={node.createdAt} />
      </div>
      <section className="card" aria-labelledby="about">
        <h2 id="about">About</h2>
        <dl className="facts">
          <dt>Endpoint</dt>
          <dd>
            <span className="mono">{node.endpointUrl}</span> <CopyButton text={node.endpointUrl} label="Copy endpoint" />
          </dd>
          <dt>Id</dt>
          <dd>
            <Id id={node.id} /> <CopyButton text={node.id} label="Copy node id" />
          </dd>
          <dt>Dashboard can</dt>
          <dd>{node.accessMode === 'full' ? 'read, create invoices and send' : 'read and create invoices'}</dd>
          <dt>Liquidity</dt>
          <dd>{liquidityOf(node)}</dd>
          <dt>Created</dt>
          <dd>
            <Time at={node.createdAt} />
          </dd>
          {node.startedAt !== null && (
            <>
              <dt>Running for</dt>
              <dd>
                <Uptime since={node.startedAt} />
              </dd>
            </>
          )}
          <dt>Software</dt>
          <dd>
            {node.version === null ? 'not started yet' : `version ${node.version}`}
            {hasUpdate(node) && (
              <>
                {' · '}
                <TextLink to="." search={{ tab: 'settings' }}>
                  Update available
                </TextLink>
              </>
            )}
          </dd>
        </dl>
      </section>
      {node.status === 'ready' && <Receiving node={node} />}
      {me.isSandbox && node.status === 'ready' && <Faucet node={node} />}
    </div>
  )
}

function Uptime({ since }: { since: number }) {
  const now = useNow(15)
  return <span title={`Started ${exact(since)}`}>{duration(Math.max(0, now - since))}</span>
}

/** What is wrong and what to do about it. Empty if all is well. */
function Condition({ node }: { node: DashboardNode }) {
  if (node.operation) return <p className="note">An operation is in progress. This page updates when it has finished.</p>
  switch (node.status) {
    case 'ready':
      return null
    case 'provisioning':
      return <p className="note">The node is being set up, which takes a few seconds. This page updates when it is ready.</p>
    case 'stopped':
      return (
        <div className="note">
          <p>The node is stopped. Its money and data are safe, it costs nothing, and it cannot receive payments.</p>
          <NodeActions node={node} />
        </div>
      )
    case 'failed':
      return (
        <div className="note">
          <p>{node.failureMessage ?? 'The node did not start. The service keeps trying.'}</p>
          <NodeActions node={node} />
        </div>
      )
  }
}

function Money({ node, isSandbox }: { node: DashboardNode; isSandbox: boolean }) {
  const { data: live, error, refetch } = useQuery({ ...liveQuery(node.id), enabled: node.status === 'ready' })
  if (node.status === 'provisioning') return <p className="money">The balance appears when the node is ready.</p>
  if (node.status !== 'ready') {
    return (
      <div className="money">
        <LastKnown node={node} />
        <p>{balanceNote(node)}</p>
      </div>
    )
  }
  if (!live && error)
    return <Problem error={error} what="The node’s balance could not be loaded." onRetry={() => void refetch()} />
  if (!live) return <Loading height={170} />
  return <Balance node={node} live={live} isSandbox={isSandbox} />
}

/** The balance that the node reported last. */
function LastKnown({ node: { balanceSat, balanceAt, isBalanceOutdated } }: { node: DashboardNode }) {
  if (balanceSat === null || balanceAt === null) return null
  return (
    <>
      <div className="figure dim" data-testid="last-balance">
        <Amount sat={balanceSat} />
      </div>
      <p className="small dim figure-note">
        Last known balance, from <Time at={balanceAt} />.{isBalanceOutdated && ' The node has received money since.'}
      </p>
    </>
  )
}

function Balance({ node, live, isSandbox }: { node: DashboardNode; live: NodeLive; isSandbox: boolean }) {
  const { channels } = live
  return (
    <div className="money" aria-live="polite">
      {live.balanceSat === null ? (
        <>
          <LastKnown node={node} />
          <p data-testid="balance-unknown">
            {live.isReachable
              ? 'The balance is unknown while the channels are offline. Your money is safe; the balance appears when they are back.'
              : 'The node is not responding, so its balance is unknown. If the node has crashed, the service restarts it automatically.'}
          </p>
        </>
      ) : (
        <>
          <div className="figure" data-testid="balance">
            <Amount sat={live.balanceSat} />
          </div>
          <p className="small dim figure-note">Balance you can send.</p>
        </>
      )}
      {live.feeCreditSat !== null && live.feeCreditSat > 0 && (
        <p data-testid="fee-credit">
          <strong>
            <Amount sat={live.feeCreditSat} /> fee credit.
          </strong>{' '}
          The first small payments are set aside for the fees of the first channel. They count as received but cannot be sent or
          withdrawn.
        </p>
      )}
      {live.balanceSat === 0 && !live.feeCreditSat && channels?.total === 0 && (
        <p className="small">
          The node has no channel yet. It opens one automatically when it receives a payment large enough to cover the cost.
        </p>
      )}
      {channels !== null && channels.total > 0 && (
        <p className="small" data-testid="inbound">
          {live.inboundSat === null ? (
            'How much the node can receive is unknown while a channel is offline.'
          ) : (
            <>
              The node can receive about <Amount sat={live.inboundSat} /> more. For a larger payment it buys capacity (
              {liquidityOf(node)}) and pays the fee from that payment.
            </>
          )}
        </p>
      )}
      <p className="small dim">
        {channels === null
          ? 'Channels unknown'
          : channels.total === 0
            ? 'No channel yet'
            : `${channels.usable} of ${channels.total} channel${channels.total === 1 ? '' : 's'} usable`}
        {live.blockHeight !== null && (
          <>
            {' · block '}
            <Count of={live.blockHeight} />
          </>
        )}
      </p>
      <Group gap="xs">
        {/* People who just created a node want to do this next and would otherwise search the tabs for it. */}
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
    announce(`Added ${sats(Number(amount))} of play money`)
    await queryClient.invalidateQueries({ queryKey: ['nodes', node.id] })
  })
  return (
    <section className="card" aria-labelledby="faucet">
      <h2 id="faucet">Play money</h2>
      <p className="small dim">This is a sandbox. Give the node as much play money as you like.</p>
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

const liquidityOf = ({ autoLiquidity }: DashboardNode): string => autoLiquidity.replace('m', ' million sat at a time')
