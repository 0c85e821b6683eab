import { Button, Group, Modal, Stack } from '@mantine/core'
import type { ReactNode } from 'react'

type Props = {
  title: ReactNode
  verb: string
  isDangerous?: boolean
  isPending: boolean
  isDisabled?: boolean
  onConfirm: () => void
  onCancel: () => void
  children: ReactNode
}

export function ConfirmDialog({
  title,
  verb,
  isDangerous = false,
  isPending,
  isDisabled = false,
  onConfirm,
  onCancel,
  children,
}: Props) {
  return (
    <Modal opened onClose={onCancel} title={title} closeOnEscape={!isPending} closeOnClickOutside={!isPending}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onConfirm()
        }}
      >
        <Stack gap="md">
          {children}
          <Group justify="flex-end">
            <Button variant="default" disabled={isPending} onClick={onCancel}>
              Cancel
            </Button>
            <Button type="submit" {...(isDangerous ? { color: 'red' } : {})} loading={isPending} disabled={isDisabled}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
