import { ActionIcon, Button } from '@mantine/core'
import { IconCheck, IconCopy } from '@tabler/icons-react'
import { type Ref, useEffect, useState } from 'react'
import { announce } from './layout/announcer.tsx'

/** The clipboard API needs https or localhost; execCommand also works over plain http. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const before = document.activeElement as HTMLElement | null
    const area = document.createElement('textarea')
    area.value = text
    // Stay inside an open dialog: its focus trap would take the focus, and with it the selection, from any element outside.
    const host = before?.closest('[role=dialog]') ?? document.querySelector('[role=dialog]') ?? document.body
    area.style.position = 'fixed'
    area.style.opacity = '0'
    host.append(area)
    area.select()
    const worked = document.execCommand('copy')
    area.remove()
    before?.focus()
    return worked
  }
}

type Props = {
  text: string
  label: string
  withText?: boolean
  variant?: 'default' | 'filled'
  onCopied?: (() => void) | undefined
  /** With text only. */
  ref?: Ref<HTMLButtonElement>
}

export function CopyButton({ text, label, withText = false, variant = 'default', onCopied, ref }: Props) {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), 2000)
    return () => clearTimeout(timer)
  }, [isCopied])
  const copy = async () => {
    const worked = await copyText(text)
    setCopied(worked)
    if (worked) onCopied?.()
    announce(worked ? 'Copied' : 'The browser blocked copying. Select the text and copy it manually.')
  }
  const icon = isCopied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />
  if (withText) {
    return (
      <Button ref={ref} variant={variant} leftSection={icon} onClick={() => void copy()}>
        {label}
      </Button>
    )
  }
  return (
    <ActionIcon variant="subtle" color="gray" aria-label={label} title={label} onClick={() => void copy()}>
      {icon}
    </ActionIcon>
  )
}
