import { Button } from '@mantine/core'
import { IconChevronRight, IconPlus } from '@tabler/icons-react'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { meQuery, webhooksQuery } from '../../api/queries.ts'
import type { CreatedWebhook, Webhook } from '../../api/types.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { TabbedPage } from '../../components/layout/tabbed-page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Snippet } from '../../components/snippet.tsx'
import { WebhookStatus } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { createWebhookCurl, listenCli } from '../../text/code/snippets.ts'
import { describeTypes } from '../../text/event-types.ts'
import { Receiver } from './receiver.tsx'
import { WebhookSecretDialog } from './secret.tsx'
import { CreateWebhookDialog } from './settings-dialog.tsx'

export function WebhooksPage() {
  const { data: me } = useSuspenseQuery(meQuery)
  const webhooks = useQuery(webhooksQuery)
  const navigate = useNavigate()
  const [isCreating, setCreating] = useState(false)
  const [created, setCreated] = useState<CreatedWebhook | null>(null)
  const button = (
    <Button leftSection={<IconPlus size={18} aria-hidden />} onClick={() => setCreating(true)}>
      Create webhook
    </Button>
  )
  return (
    <TabbedPage section="Developers" at="/developers/webhooks">
      <section aria-labelledby="webhooks">
        <div className="page-head">
          <h2 id="webhooks" className="section-title">
            Webhooks
          </h2>
          {!webhooks.isPending && webhooks.data?.length !== 0 && button}
        </div>
        {!webhooks.data && (
          <Problem error={webhooks.error} what="Your webhooks could not be loaded." onRetry={() => void webhooks.refetch()} />
        )}
        {webhooks.isPending && <Loading height={420} shape="list" />}
        {webhooks.data?.length === 0 && (
          <EmptyState
            art="webhooks"
            title="You have no webhooks yet."
            sentence="A webhook sends events to your server as they happen: a payment arrived, a node failed, credit runs low."
            action={button}
            curl={createWebhookCurl(me.publicUrl)}
          />
        )}
        {webhooks.data && webhooks.data.length > 0 && <WebhookList webhooks={webhooks.data} />}
      </section>
      {!webhooks.isPending && <Receiver />}
      {!webhooks.isPending && (
        <section className="card spaced" aria-labelledby="laptop">
          <h2 id="laptop">On your laptop</h2>
          <p className="small">
            To develop a receiver, you need neither a webhook nor a public address. This command forwards events to a program on
            your machine, signed like webhooks. Set SERVICE_API_KEY to a key with the Events permission.
          </p>
          <Snippet code={listenCli(me.publicUrl)} label="Forward events to your machine" language="curl" />
        </section>
      )}
      {isCreating && (
        <CreateWebhookDialog
          onCancel={() => setCreating(false)}
          onCreated={(webhook) => {
            setCreating(false)
            setCreated(webhook)
          }}
        />
      )}
      {created && (
        <WebhookSecretDialog
          title="Store the secret of the webhook"
          webhook={created}
          secret={created.secret}
          onClose={() =>
            void navigate({ to: '/developers/webhooks/$webhookId', params: { webhookId: created.id }, replace: true })
          }
        />
      )}
    </TabbedPage>
  )
}

function WebhookList({ webhooks }: { webhooks: Webhook[] }) {
  return (
    <ul className="card list rows" aria-label="Webhooks">
      {webhooks.map((webhook) => (
        <li key={webhook.id}>
          <Link to="/developers/webhooks/$webhookId" params={{ webhookId: webhook.id }} className="row webhook">
            <span className="row-main">
              <strong className="mono">{webhook.url}</strong>
              {webhook.description && (
                <span className="small">
                  <br />
                  <bdi>{webhook.description}</bdi>
                </span>
              )}
              <br />
              <span className="small dim">
                {describeTypes(webhook)}
                {webhook.nodeIds && ` · ${webhook.nodeIds.length === 1 ? '1 node' : `${webhook.nodeIds.length} nodes`}`} ·{' '}
                <Health webhook={webhook} />
              </span>
            </span>
            <WebhookStatus webhook={webhook} />
            <IconChevronRight size={18} aria-hidden className="dim from-460" />
          </Link>
        </li>
      ))}
    </ul>
  )
}

function Health({ webhook: { lastSuccessAt, failingSince, disabledReason } }: { webhook: Webhook }) {
  return (
    <>
      {disabledReason && `${DISABLED[disabledReason] ?? disabledReason} · `}
      {failingSince !== null && !disabledReason && (
        <>
          first failure <Time at={failingSince} /> ·{' '}
        </>
      )}
      {lastSuccessAt === null ? (
        'no success yet'
      ) : (
        <>
          last success <Time at={lastSuccessAt} />
        </>
      )}
    </>
  )
}

const DISABLED: Record<string, string> = {
  gone: 'disabled because a response was 410 Gone',
  failing: 'disabled because every attempt failed for five days',
}
