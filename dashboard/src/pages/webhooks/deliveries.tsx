import { Button, Group, NativeSelect } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { DELIVERY_STATUSES, deliveriesQuery, queryClient } from '../../api/queries.ts'
import type { Delivery, DeliveryStatus, Webhook } from '../../api/types.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { LoadMore } from '../../components/load-more.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { DeliveryBadge } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { Attempts } from './attempts.tsx'
import { ReplayDialog } from './replay-dialog.tsx'

const NAMES: Record<DeliveryStatus, string> = { pending: 'Pending', delivered: 'Delivered', failed: 'Failed' }

export function Deliveries({ webhook }: { webhook: Webhook }) {
  const { status } = useSearch({ from: '/app/developers/webhooks/$webhookId' })
  const navigate = useNavigate({ from: '/developers/webhooks/$webhookId' })
  const deliveries = useInfiniteQuery(deliveriesQuery(webhook, status))
  const rows = deliveries.data?.pages.flatMap((page) => page.deliveries)
  const [isReplaying, setReplaying] = useState(false)
  return (
    <section aria-labelledby="deliveries">
      <div className="page-head">
        <h2 id="deliveries" className="section-title">
          Deliveries
        </h2>
        <Group align="flex-end" gap="xs">
          <NativeSelect
            aria-label="Status of deliveries"
            value={status ?? ''}
            data={[{ value: '', label: 'Any status' }, ...DELIVERY_STATUSES.map((value) => ({ value, label: NAMES[value] }))]}
            onChange={(event) => {
              const chosen = DELIVERY_STATUSES.find((one) => one === event.currentTarget.value)
              void navigate({ search: { status: chosen }, replace: true, resetScroll: false })
            }}
          />
          <Button variant="default" onClick={() => setReplaying(true)}>
            Replay…
          </Button>
        </Group>
      </div>
      {!deliveries.data && (
        <Problem error={deliveries.error} what="The deliveries could not be loaded." onRetry={() => void deliveries.refetch()} />
      )}
      {deliveries.isPending && <Loading height={120} shape="list" />}
      {rows?.length === 0 && (
        <EmptyState
          art={status ? 'search' : 'webhooks'}
          title={status ? 'No deliveries have this status.' : 'Nothing has been sent yet.'}
          sentence={
            status
              ? 'Choose another status above.'
              : 'Each event that is sent to this webhook is listed here, except test events: their result is shown above.'
          }
        />
      )}
      {rows && rows.length > 0 && (
        <ul className="card list rows" aria-label="Deliveries">
          {rows.map((delivery) => (
            <Row key={delivery.id} delivery={delivery} webhook={webhook} />
          ))}
        </ul>
      )}
      <LoadMore query={deliveries} />
      {isReplaying && <ReplayDialog webhook={webhook} onClose={() => setReplaying(false)} />}
    </section>
  )
}

function Row({ delivery, webhook }: { delivery: Delivery; webhook: Webhook }) {
  const { type, eventId, attempts, createdAt, nextAttemptAt } = delivery
  const last = attempts.at(-1)
  const redeliver = useAction(async () => {
    await api.post(`/webhooks/${webhook.id}/deliveries/${delivery.id}/redeliver`)
    announce(`${type} is being sent again`)
    await queryClient.invalidateQueries({ queryKey: ['webhooks', webhook.id] })
  })
  return (
    <li className="row delivery">
      <div className="row-main">
        <strong className="mono">{type}</strong> <span className="mono small dim">{eventId}</span>
        <div className="small dim">
          <Time at={createdAt} />
          {last && ` · ${last.error ?? `status ${last.status}`}`}
          {nextAttemptAt !== null && webhook.enabled && last && (
            <>
              {' '}
              · next attempt <Time at={nextAttemptAt} />
            </>
          )}
          {nextAttemptAt !== null && !webhook.enabled && ' · waits until the webhook is enabled'}
        </div>
        <Problem error={redeliver.error} what="The event was not sent again." />
      </div>
      <DeliveryBadge delivery={delivery} />
      <Button
        size="xs"
        variant="default"
        loading={redeliver.isPending}
        aria-label={`Send again: ${type} ${eventId}`}
        onClick={() => void redeliver.run()}
      >
        Send again
      </Button>
      {attempts.length > 0 && <Attempts of={attempts} />}
    </li>
  )
}
