import { Button, NativeSelect } from '@mantine/core'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import type { Webhook } from '../../api/types.ts'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { SecretsDialog } from '../../components/dialogs/secrets-dialog.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'

type SecretProps = { title: string; webhook: Webhook; secret: string; onClose: () => void }

export function WebhookSecretDialog({ title, webhook, secret, onClose }: SecretProps) {
  return (
    <SecretsDialog
      title={title}
      warning="It will not be shown again. Store it where your receiver can read it, for example in the environment variable WEBHOOK_SECRET."
      fileName={`boltyard-${webhook.id}.txt`}
      fileHeading={`Secret of the webhook ${webhook.id} to ${webhook.url}`}
      secrets={[
        {
          name: 'Webhook secret',
          value: secret,
          explanation: 'Verifies that a request comes from this service and is unchanged.',
        },
      ]}
      onClose={onClose}
    />
  )
}

const GRACE = [
  { value: '86400', label: '24 hours' },
  { value: '3600', label: '1 hour' },
  { value: '0', label: 'Not at all, because it may have leaked' },
]

export function WebhookSecret({ webhook }: { webhook: Webhook }) {
  const [isRotating, setRotating] = useState(false)
  const [graceSeconds, setGraceSeconds] = useState('86400')
  const [secret, setSecret] = useState<string | null>(null)
  const rotate = useAction(async () => {
    const body = { graceSeconds: Number(graceSeconds) }
    const rotated = await api.post<{ secret: string }>(`/webhooks/${webhook.id}/rotate-secret`, body)
    setRotating(false)
    setSecret(rotated.secret)
  })
  return (
    <section className="card" aria-labelledby="secret">
      <h2 id="secret">Secret</h2>
      <p className="small dim">
        Each request is signed with a secret that only you and this service know. If you have lost it, or someone else may have
        seen it, replace it.
      </p>
      <Button variant="default" onClick={() => setRotating(true)}>
        Rotate secret…
      </Button>
      {isRotating && (
        <ConfirmDialog
          title="Rotate the secret?"
          verb="Rotate secret"
          isPending={rotate.isPending}
          onCancel={() => setRotating(false)}
          onConfirm={() => void rotate.run()}
        >
          <p>
            You get a new secret, which signs every request from now on. During the grace period, requests are signed with the
            current secret, too, so your receiver keeps working until you have given it the new one.
          </p>
          <NativeSelect
            label="Keep the current secret for"
            data-autofocus
            value={graceSeconds}
            data={GRACE}
            onChange={(event) => setGraceSeconds(event.currentTarget.value)}
          />
          <Problem
            error={rotate.error}
            what="The secret was not rotated."
            again="The secret may have been replaced. Rotate it again, and give your receiver the new one at once."
          />
        </ConfirmDialog>
      )}
      {secret !== null && (
        <WebhookSecretDialog title="Store the new secret" webhook={webhook} secret={secret} onClose={() => setSecret(null)} />
      )}
    </section>
  )
}
