import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { nodesQuery, queryClient, webhookQuery } from '../../api/queries.ts'
import type { Webhook } from '../../api/types.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { Id } from '../../components/id.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { WebhookStatus } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { describeTypes } from '../../text/event-types.ts'
import { distinctNames } from '../../text/node-names.ts'
import { Deliveries } from './deliveries.tsx'
import { WebhookSecret } from './secret.tsx'
import { EditWebhookDialog } from './settings-dialog.tsx'
import { TestEvent } from './test-event.tsx'

export function WebhookPage() {
  const { webhookId } = useParams({ from: '/app/developers/webhooks/$webhookId' })
  const { data: webhook, error, refetch } = useQuery(webhookQuery(webhookId))
  return (
    <Page
      key={webhookId}
      title="Webhook"
      heading={<>Webhook {webhook && <WebhookStatus webhook={webhook} />}</>}
      actions={<TextLink to="/developers/webhooks">All webhooks</TextLink>}
    >
      {!webhook && error && <Problem error={error} what="This webhook could not be loaded." onRetry={() => void refetch()} />}
      {!webhook && !error && <Loading height={700} />}
      {webhook && (
        <div className="stack">
          <Details webhook={webhook} />
          <TestEvent webhook={webhook} />
          <Deliveries webhook={webhook} />
          <WebhookSecret webhook={webhook} />
          <Delete webhook={webhook} />
        </div>
      )}
    </Page>
  )
}

function Details({ webhook }: { webhook: Webhook }) {
  const { data: nodes } = useQuery(nodesQuery)
  const [isEditing, setEditing] = useState(false)
  const change = useAction(async () => {
    await api.patch(`/webhooks/${webhook.id}`, { enabled: !webhook.enabled })
    announce(webhook.enabled ? 'The webhook is disabled' : 'The webhook is enabled')
    await queryClient.invalidateQueries({ queryKey: ['webhooks'] })
  })
  const names = distinctNames(nodes ?? [])
  const nameOf = (nodeId: string): string => names.get(nodeId) ?? nodeId
  return (
    <section className="card" aria-label="Details">
      <dl className="facts">
        <dt>URL</dt>
        <dd>
          <span className="mono">{webhook.url}</span> <CopyButton text={webhook.url} label="Copy URL" />
        </dd>
        {webhook.description && (
          <>
            <dt>Description</dt>
            <dd dir="auto">{webhook.description}</dd>
          </>
        )}
        <dt>Events</dt>
        <dd>{describeTypes(webhook)}</dd>
        <dt>Nodes</dt>
        <dd>{webhook.nodeIds?.map(nameOf).join(', ') ?? 'All nodes'}</dd>
        <dt>Id</dt>
        <dd>
          <Id id={webhook.id} /> <CopyButton text={webhook.id} label="Copy webhook id" />
        </dd>
        <dt>Created</dt>
        <dd>
          <Time at={webhook.createdAt} />
        </dd>
        <dt>Last success</dt>
        <dd>{webhook.lastSuccessAt === null ? 'none yet' : <Time at={webhook.lastSuccessAt} />}</dd>
        {webhook.failingSince !== null && (
          <>
            <dt>Failing since</dt>
            <dd>
              <Time at={webhook.failingSince} />
            </dd>
          </>
        )}
      </dl>
      {!webhook.enabled && <p className="note">{whyDisabled(webhook)}</p>}
      <Group gap="xs" mt="md">
        <Button variant="default" onClick={() => setEditing(true)}>
          Edit…
        </Button>
        <Button variant={webhook.enabled ? 'default' : 'filled'} loading={change.isPending} onClick={() => void change.run()}>
          {webhook.enabled ? 'Disable' : 'Enable'}
        </Button>
      </Group>
      <Problem error={change.error} what="The webhook was not changed." />
      {isEditing && <EditWebhookDialog webhook={webhook} onClose={() => setEditing(false)} />}
    </section>
  )
}

function whyDisabled({ disabledReason }: Webhook): string {
  const next =
    'Events that happen while it is disabled are not sent. When you enable it, waiting deliveries continue; use Replay for the events in between.'
  if (disabledReason === 'gone') return `The service disabled this webhook, because the receiver responded with 410 Gone. ${next}`
  if (disabledReason === 'failing')
    return `The service disabled this webhook, because every attempt failed for five days. The deliveries below show why. ${next}`
  return `This webhook is disabled. ${next}`
}

function Delete({ webhook }: { webhook: Webhook }) {
  const navigate = useNavigate()
  const [isDeleting, setDeleting] = useState(false)
  const remove = useAction(async () => {
    await api.delete(`/webhooks/${webhook.id}`)
    await navigate({ to: '/developers/webhooks', replace: true })
    announce('The webhook was deleted')
    // Remove it from the cache only after leaving its page, which would otherwise fetch it again and fail.
    queryClient.removeQueries({ queryKey: ['webhooks', webhook.id] })
    await queryClient.invalidateQueries({ queryKey: ['webhooks'] })
  })
  return (
    <section className="card danger" aria-labelledby="danger">
      <h2 id="danger">Delete this webhook</h2>
      <p className="small">Nothing more will be sent to the URL, and its deliveries are removed.</p>
      <Button color="red" variant="outline" onClick={() => setDeleting(true)}>
        Delete webhook…
      </Button>
      {isDeleting && (
        <ConfirmDialog
          title="Delete this webhook?"
          verb="Delete webhook"
          isDangerous
          isPending={remove.isPending}
          onCancel={() => setDeleting(false)}
          onConfirm={() => void remove.run()}
        >
          <p>
            Nothing more will be sent to <span className="mono">{webhook.url}</span>, not even events that are waiting. This
            cannot be undone. To pause the webhook, disable it instead.
          </p>
          <Problem error={remove.error} what="The webhook was not deleted." />
        </ConfirmDialog>
      )}
    </section>
  )
}
