import { useQuery } from '@tanstack/react-query'
import { nodeReceivingQuery } from '../../api/node-details.ts'
import type { DashboardNode } from '../../api/types.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { shortened } from '../../text/format.ts'

/** The node's Lightning address and offer, which can be paid again and again. */
export function Receiving({ node }: { node: DashboardNode }) {
  const { data, error, refetch } = useQuery(nodeReceivingQuery(node.id))
  return (
    <section className="card" aria-labelledby="receiving">
      <h2 id="receiving">Receive without an invoice</h2>
      {!data && error && (
        <Problem error={error} what="The node’s addresses could not be loaded." onRetry={() => void refetch()} />
      )}
      {!data && !error && <Loading height={64} />}
      {data && (
        <>
          <dl className="facts">
            <dt>Lightning address</dt>
            <dd>
              {data.lightningAddress ? (
                <>
                  <span className="mono">{data.lightningAddress}</span>
                  <CopyButton text={data.lightningAddress} label="Copy Lightning address" />
                </>
              ) : data.needsChannel ? (
                'None yet: the node gets one with its first channel.'
              ) : (
                'Not available.'
              )}
            </dd>
            <dt>Offer (BOLT 12)</dt>
            <dd>
              {data.offer ? (
                <>
                  <span className="mono" title={data.offer}>
                    {shortened(data.offer, 16)}
                  </span>
                  <CopyButton text={data.offer} label="Copy offer" />
                </>
              ) : (
                'Not available.'
              )}
            </dd>
          </dl>
          <p className="small dim">
            Anyone can pay these as often as they like, with any amount. Such payments appear under Payments of this node, not in
            the gateway.
          </p>
        </>
      )}
    </section>
  )
}
