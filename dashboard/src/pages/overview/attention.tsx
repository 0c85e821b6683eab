import { IconAlertTriangle, IconInfoCircle } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef } from 'react'
import { paymentTotalsQuery, UNFULFILLED_LATELY } from '../../api/payments.ts'
import type { Overview } from '../../api/types.ts'
import { TextLink } from '../../components/layout/links.tsx'
import { type Item, itemsOf, mayBeUnfulfilled } from '../../text/attention.ts'

/** What goes wrong, the worst first, and where to do something about it. Nothing if all is well. */
export function Attention({ overview }: { overview: Overview }) {
  const items = itemsOf(overview, useUnfulfilled(overview))
  if (items.length === 0) return null
  return (
    <section className="card spaced-below" aria-labelledby="attention">
      <h2 id="attention">What needs attention</h2>
      <ul className="rows">
        {items.map(({ kind, tone, sentence }) => (
          <li key={kind} className="attention-item" data-testid={`attention-${kind}`}>
            {tone === 'info' ? (
              <IconInfoCircle size={20} className="attention-info" aria-hidden />
            ) : (
              <IconAlertTriangle size={20} className={`attention-${tone}`} aria-hidden />
            )}
            <span className="row-main">{sentence}</span>
            {LINKS[kind]}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The number of payments in the linked list. The overview itself only tells whether there may be any. */
function useUnfulfilled({ attention }: Overview): number | undefined {
  const { data, refetch } = useQuery({ ...paymentTotalsQuery(UNFULFILLED_LATELY), enabled: mayBeUnfulfilled(attention) })
  const known = attention.unclaimedPayments + attention.failedDeliveries
  const counted = useRef(known)
  useEffect(() => {
    if (counted.current === known) return
    counted.current = known
    if (known > 0) void refetch()
  }, [known, refetch])
  return data?.undelivered.count
}

const webhooks = <TextLink to="/developers/webhooks">Show webhooks</TextLink>
const LINKS: Record<Item['kind'], ReactNode> = {
  failed: (
    <TextLink to="/nodes" search={{ show: 'failed' }}>
      Show nodes
    </TextLink>
  ),
  silent: (
    <TextLink to="/nodes" search={{ show: 'silent' }}>
      Show nodes
    </TextLink>
  ),
  unfulfilled: (
    <TextLink to="/gateway" search={UNFULFILLED_LATELY}>
      Show payments
    </TextLink>
  ),
  disabled: webhooks,
  failing: webhooks,
  updates: (
    <TextLink to="/nodes" search={{ show: 'update' }}>
      Show nodes
    </TextLink>
  ),
}
