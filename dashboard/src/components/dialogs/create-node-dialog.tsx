import { Button, Group, Modal, NativeSelect, Radio, Stack, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { ApiError, api, freshKey } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { CreatedNode, Me } from '../../api/types.ts'
import { Amount } from '../amount.tsx'
import { ButtonLink } from '../layout/links.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'
import { MissingCredit, offerOf } from './missing-credit.tsx'

type Props = { me: Me; onCancel: () => void; onCreated: (created: CreatedNode) => void }

const LONGEST_NAME = 16

export function CreateNodeDialog({ me, onCancel, onCreated }: Props) {
  // Fixed while the dialog is open, so a double click or a retry after a lost response creates only one node.
  const [idempotencyKey] = useState(freshKey)
  const [name, setName] = useState('')
  const [autoLiquidity, setAutoLiquidity] = useState('2m')
  const [accessMode, setAccessMode] = useState('limited')
  const [mayExist, setMayExist] = useState(false)
  const create = useAction(async () => {
    const body = { autoLiquidity, accessMode, ...(name.trim() === '' ? {} : { name: name.trim() }) }
    const created = await api.post<CreatedNode>('/nodes', body, { idempotencyKey }).catch((error: unknown) => {
      if (error instanceof ApiError && error.isUncertain) setMayExist(true)
      throw error
    })
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
  const refusal = (
    <Problem
      error={create.error}
      what={mayExist ? 'The node may have been created.' : 'The node was not created.'}
      again="Press Create again. If the node was already created, you get its credentials and no second node is created. Keep this dialog open until then."
      {...(offer ? { next: 'Pay the missing amount below, then press Create again.' } : {})}
    />
  )

  return (
    <Modal
      opened
      onClose={onCancel}
      title="Create a node"
      size="lg"
      closeOnClickOutside={!create.isPending}
      closeOnEscape={!create.isPending}
    >
      <form
        onSubmit={submit}
        onChange={() => {
          // Keep showing the invoice, which can still be paid, and the warning that the node may exist.
          if (!offer && !mayExist) create.onEdit()
        }}
      >
        <Stack gap="md">
          <TextInput
            label="Name"
            dir="auto"
            description="Optional, at most 16 characters. Only you see this."
            placeholder="Chosen for you"
            autoComplete="off"
            data-autofocus
            value={name}
            error={isTooLong && 'At most 16 characters.'}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Radio.Group
            label="What the dashboard can do with the node"
            description="You get both of the node’s passwords either way. This cannot be changed later."
            value={accessMode}
            onChange={setAccessMode}
          >
            <Stack gap="xs" mt="xs">
              <Radio
                value="limited"
                label="Read and create invoices"
                description="No one can send the node’s money from here, not even with your session. The dashboard only has the restricted password."
              />
              <Radio
                value="full"
                label="Also send payments"
                description="Anyone signed in to this account can spend the node’s money. The dashboard has the full password."
              />
            </Stack>
          </Radio.Group>
          <details className="advanced">
            <summary>Advanced</summary>
            <NativeSelect
              label="Liquidity per purchase"
              description="When a payment exceeds the node’s capacity to receive, the node buys more and pays the fee from that payment. Larger purchases are less frequent but cost more each."
              value={autoLiquidity}
              data={[
                { value: '2m', label: '2 million sat' },
                { value: '5m', label: '5 million sat' },
                { value: '10m', label: '10 million sat' },
              ]}
              onChange={(event) => setAutoLiquidity(event.currentTarget.value)}
            />
          </details>
          {me.nodePriceSatPerDay > 0 && (
            <p className="small dim">
              A running node costs <Amount sat={me.nodePriceSatPerDay} /> of credit a day. A stopped node costs nothing.
            </p>
          )}
          {offer ? <MissingCredit key={offer.invoice} offer={offer} refusal={refusal} isSandbox={me.isSandbox} /> : refusal}
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
