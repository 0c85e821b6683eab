import { Button, Group, Modal, Radio, Stack, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { ApiError, api } from '../../api/client.ts'
import { nodesQuery, queryClient } from '../../api/queries.ts'
import type { ChangeWebhookParams, CreatedWebhook, EventFilter, Webhook } from '../../api/types.ts'
import { announce } from '../../components/layout/announcer.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'
import { EventChoices, NodeChoices } from './choices.tsx'

type Settings = Pick<Webhook, 'url' | 'types' | 'nodeIds' | 'description'>

export function CreateWebhookDialog({
  onCancel,
  onCreated,
}: {
  onCancel: () => void
  onCreated: (webhook: CreatedWebhook) => void
}) {
  return (
    <SettingsDialog
      title="Create a webhook"
      verb="Create webhook"
      failure="The webhook was not created."
      again="Look for the webhook in the list. If it is there, rotate its secret, because its first one cannot be shown again."
      settings={{ url: '', types: null, nodeIds: null, description: null }}
      onCancel={onCancel}
      onSubmit={async (settings) => {
        const created = await api.post<CreatedWebhook>('/webhooks', settings)
        void queryClient.invalidateQueries({ queryKey: ['webhooks'] })
        onCreated(created)
      }}
    />
  )
}

export function EditWebhookDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  return (
    <SettingsDialog
      title="Edit the webhook"
      verb="Save"
      failure="The webhook was not changed."
      settings={webhook}
      onCancel={onClose}
      onSubmit={async (settings) => {
        const changed = changesOf(webhook, settings)
        if (Object.keys(changed).length > 0) {
          await api.patch(`/webhooks/${webhook.id}`, changed)
          await queryClient.invalidateQueries({ queryKey: ['webhooks'] })
          announce('The webhook was changed')
        }
        onClose()
      }}
    />
  )
}

/** Only what differs: sending the same URL again would restart the five days after which a failing webhook is disabled. */
function changesOf(before: Settings, after: Settings): ChangeWebhookParams {
  const isChanged = ([name, value]: [string, unknown]): boolean =>
    JSON.stringify(value) !== JSON.stringify(before[name as keyof Settings])
  return Object.fromEntries(Object.entries(after).filter(isChanged))
}

type Props = {
  title: string
  verb: string
  failure: string
  /** What to do if the request may have worked. */
  again?: string
  settings: Settings
  onCancel: () => void
  onSubmit: (settings: Settings) => Promise<void>
}

function SettingsDialog({ title, verb, failure, again, settings, onCancel, onSubmit }: Props) {
  const { data: nodes = [] } = useQuery(nodesQuery)
  const [url, setUrl] = useState(settings.url)
  const [description, setDescription] = useState(settings.description ?? '')
  const [hasAllTypes, setAllTypes] = useState(settings.types === null)
  const [types, setTypes] = useState((settings.types ?? []) as EventFilter[])
  const [hasAllNodes, setAllNodes] = useState(settings.nodeIds === null)
  const [nodeIds, setNodeIds] = useState(settings.nodeIds ?? [])
  const submit = useAction(() =>
    onSubmit({
      url: url.trim(),
      types: hasAllTypes ? null : types,
      nodeIds: hasAllNodes ? null : nodeIds,
      description: description.trim() || null,
    }),
  )
  const urlField = useRef<HTMLInputElement>(null)
  const urlError = errorOfField(submit.error, 'url')
  const descriptionError = errorOfField(submit.error, 'description')
  const nodesError = submit.error instanceof ApiError && submit.error.code === 'node_not_found' ? submit.error.message : null
  // With the focus on the field, a screen reader announces its error.
  useEffect(() => {
    if (urlError) urlField.current?.focus()
  }, [urlError])
  const isIncomplete = url.trim() === '' || (!hasAllTypes && types.length === 0) || (!hasAllNodes && nodeIds.length === 0)

  return (
    <Modal
      opened
      onClose={onCancel}
      title={title}
      size="lg"
      closeOnClickOutside={!submit.isPending}
      closeOnEscape={!submit.isPending}
    >
      <form
        onSubmit={(event: FormEvent) => {
          event.preventDefault()
          void submit.run()
        }}
        onChange={submit.onEdit}
      >
        <Stack gap="md">
          <TextInput
            ref={urlField}
            label="URL"
            description="Events are sent here with POST. Any status from 200 to 299 means that you have received them."
            placeholder="https://shop.example/hook"
            inputMode="url"
            required
            withAsterisk={false}
            maxLength={2000}
            autoComplete="off"
            spellCheck={false}
            data-autofocus
            value={url}
            error={urlError}
            onChange={(event) => {
              setUrl(event.currentTarget.value)
              submit.clear()
            }}
          />
          <TextInput
            label="Description"
            dir="auto"
            description="Optional. Only you see this."
            maxLength={500}
            autoComplete="off"
            value={description}
            error={descriptionError}
            onChange={(event) => setDescription(event.currentTarget.value)}
          />
          <Radio.Group label="Events" value={hasAllTypes ? 'all' : 'some'} onChange={(value) => setAllTypes(value === 'all')}>
            <Stack gap="xs" mt="xs">
              <Radio value="all" label="All events" description="Also those of types that are added later." />
              <Radio value="some" label="Only selected events" />
            </Stack>
          </Radio.Group>
          {!hasAllTypes && <EventChoices filters={types} onChange={setTypes} />}
          {(nodes.length > 0 || !hasAllNodes) && (
            <Radio.Group
              label="Nodes"
              value={hasAllNodes ? 'all' : 'some'}
              error={nodesError}
              onChange={(value) => setAllNodes(value === 'all')}
            >
              <Stack gap="xs" mt="xs">
                <Radio value="all" label="All nodes" />
                <Radio
                  value="some"
                  label="Only selected nodes"
                  description="Credit and API key events do not belong to a node, so they are not sent."
                />
              </Stack>
            </Radio.Group>
          )}
          {!hasAllNodes && <NodeChoices nodes={nodes} nodeIds={nodeIds} onChange={setNodeIds} />}
          {!urlError && !descriptionError && !nodesError && (
            <Problem error={submit.error} what={failure} {...(again ? { again } : {})} />
          )}
          <Group justify="flex-end">
            <Button variant="default" disabled={submit.isPending} onClick={onCancel}>
              Cancel
            </Button>
            <Button type="submit" loading={submit.isPending} disabled={isIncomplete}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

/** What the service says about one field, without the field's name, because the message is shown next to the field. */
function errorOfField(error: unknown, field: string): string | null {
  const about = `The field "${field}" `
  if (!(error instanceof ApiError) || !error.message.startsWith(about)) return null
  const rest = error.message.slice(about.length).replace(/^is invalid\. /, '')
  return rest.charAt(0).toUpperCase() + rest.slice(1)
}
