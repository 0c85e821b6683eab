import { Button, Group, Modal, NativeSelect, Radio, Stack, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { ApiError, api, freshKey } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { CreatedNode, Me } from '../../api/types.ts'
import { Amount } from '../amount.tsx'
import { ButtonLink } from '../layout/links.tsx'
import { MissingCredit, offerOf } from '../missing-credit.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'

type Props = { me: Me; onCancel: () => void; onCreated: (created: CreatedNode) => void }

const LONGEST_NAME = 16

export function CreateNodeDialog({ me, onCancel, onCreated }: Props) {
  // One for the life of the dialog: a double click, or a second try after an answer that was lost, makes one node.
  const [idempotencyKey] = useState(freshKey)
  const [name, setName] = useState('')
  const [autoLiquidity, setAutoLiquidity] = useState('2m')
  const [accessMode, setAccessMode] = useState('limited')
  const create = useAction(async () => {
    const body = { autoLiquidity, accessMode, ...(name.trim() === '' ? {} : { name: name.trim() }) }
    const created = await api.post<CreatedNode>('/nodes', body, { idempotencyKey })
    void queryClient.invalidateQueries({ queryKey: ['nodes'] })
    void queryClient.invalidateQueries({ queryKey: ['overview'] })
    onCreated(created)
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void create.run()
  }
  const lacksCredit = create.error instanceof ApiError && create.error.code === 'insufficient_credit'
  const offer = offerOf(create.error)
  const isTooLong = [...name.trim()].length > LONGEST_NAME

  return (
    <Modal
      opened
      onClose={onCancel}
      title="Create a node"
      size="lg"
      closeOnClickOutside={!create.isPending}
      closeOnEscape={!create.isPending}
    >
      <form onSubmit={submit}>
        <Stack gap="md">
          <TextInput
            label="Name"
            dir="auto"
            description="Optional, at most 16 characters. Only you see it."
            placeholder="Node 1"
            autoComplete="off"
            data-autofocus
            value={name}
            error={isTooLong && 'At most 16 characters.'}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <NativeSelect
            label="Liquidity bought at a time"
            description="When a payment does not fit, the node buys room to receive, and pays its fee out of that payment. More room at once means fewer purchases, each of them dearer."
            value={autoLiquidity}
            data={[
              { value: '2m', label: '2 million sat' },
              { value: '5m', label: '5 million sat' },
              { value: '10m', label: '10 million sat' },
            ]}
            onChange={(event) => setAutoLiquidity(event.currentTarget.value)}
          />
          <Radio.Group
            label="What this dashboard may do with the node"
            description="You get both passwords of the node either way. This cannot be changed later."
            value={accessMode}
            onChange={setAccessMode}
          >
            <Stack gap="xs" mt="xs">
              <Radio
                value="limited"
                label="Read and create invoices"
                description="Nobody can send the node's money from here, not even with your session. The service keeps only the restricted password for the dashboard."
              />
              <Radio
                value="full"
                label="Also send payments"
                description="Whoever is signed in here can spend what is on the node. The service keeps the full password for the dashboard."
              />
            </Stack>
          </Radio.Group>
          {me.nodePriceSatPerDay > 0 && (
            <p className="small dim">
              It costs <Amount sat={me.nodePriceSatPerDay} /> a day of your credit while it runs, and nothing while it is stopped.
            </p>
          )}
          <Problem
            error={create.error}
            what="The node was not created."
            again="Press Create again: that makes no second node, and shows the credentials of the one that was made."
            {...(offer ? { next: 'Pay what is missing below, then press Create again.' } : {})}
          />
          {offer && <MissingCredit offer={offer} isSandbox={me.isSandbox} />}
          <Group justify="flex-end">
            {lacksCredit && !offer && (
              <ButtonLink to="/credit" variant="default">
                Top up
              </ButtonLink>
            )}
            <Button variant="default" disabled={create.isPending} onClick={onCancel}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending} disabled={isTooLong}>
              Create
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
