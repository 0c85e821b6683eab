import { Button, Checkbox, Group, Modal, Stack } from '@mantine/core'
import { IconDownload, IconEye, IconEyeOff } from '@tabler/icons-react'
import { useBlocker } from '@tanstack/react-router'
import { useState } from 'react'
import { CopyButton } from '../copy-button.tsx'

export type Secret = { name: string; value: string; explanation: string }

type Props = {
  title: string
  /** What is lost without them. */
  warning: string
  secrets: Secret[]
  fileName: string
  /** The first lines of the downloaded file: what these belong to. */
  fileHeading: string
  onClose: () => void
}

/**
 * Shown once and kept nowhere but in this component: no query, address, toast or storage has them, so that closing it is the end of them.
 * It cannot be left by accident: not with Escape, a click beside it, the back button or a reload, before the tick is set.
 */
export function SecretsDialog({ title, warning, secrets, fileName, fileHeading, onClose }: Props) {
  const [isStored, setStored] = useState(false)
  const [shown, setShown] = useState<string[]>([])
  useBlocker({ shouldBlockFn: () => !isStored, enableBeforeUnload: () => !isStored, withResolver: false })
  const toggle = (name: string) => setShown((now) => (now.includes(name) ? now.filter((one) => one !== name) : [...now, name]))
  const file = () =>
    [fileHeading, `Made ${new Date().toISOString()}`, '', ...secrets.flatMap(({ name, value }) => [`${name}:`, value, ''])].join(
      '\n',
    )

  return (
    <Modal
      opened
      onClose={() => {}}
      title={title}
      size="lg"
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
    >
      <Stack gap="md">
        <p className="note">{warning}</p>
        {secrets.map(({ name, value, explanation }) => {
          const isShown = shown.includes(name)
          return (
            <section key={name} aria-label={name}>
              <Group justify="space-between" wrap="nowrap">
                <strong>{name}</strong>
                <Group gap={4} wrap="nowrap">
                  <Button
                    size="compact-sm"
                    variant="subtle"
                    leftSection={isShown ? <IconEyeOff size={16} aria-hidden /> : <IconEye size={16} aria-hidden />}
                    aria-label={`${isShown ? 'Hide' : 'Show'} ${name}`}
                    onClick={() => toggle(name)}
                  >
                    {isShown ? 'Hide' : 'Show'}
                  </Button>
                  <CopyButton text={value} label={`Copy ${name}`} />
                </Group>
              </Group>
              <div className="small dim">{explanation}</div>
              <div className="snippet snippet-wrap">
                {/* While it is masked the value is not in the page at all: whoever looks over a shoulder, or reads the page, gets dots. */}
                <pre data-testid={`secret-${name}`}>{isShown ? value : '•'.repeat(24)}</pre>
              </div>
            </section>
          )
        })}
        <Button variant="default" leftSection={<IconDownload size={16} aria-hidden />} onClick={() => download(fileName, file())}>
          Download as a text file
        </Button>
        <Checkbox
          label="I have stored it"
          description="It cannot be shown again, by anyone."
          checked={isStored}
          onChange={(event) => setStored(event.currentTarget.checked)}
        />
        <Button disabled={!isStored} onClick={onClose}>
          Close
        </Button>
      </Stack>
    </Modal>
  )
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  const anchor = document.createElement('a')
  anchor.href = url
  anchor.download = name
  anchor.click()
  // The browser reads it after this turn; the text would otherwise stay in memory for as long as the page does.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
