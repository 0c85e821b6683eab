import { Button, Checkbox, Group, Modal, Stack } from '@mantine/core'
import { IconDownload, IconEye, IconEyeOff } from '@tabler/icons-react'
import { useBlocker } from '@tanstack/react-router'
import { useState } from 'react'
import { CopyButton } from '../copy-button.tsx'

export type Secret = { name: string; value: string; explanation: string }

type Props = {
  title: string
  /** Says that the secrets are shown only once, and where to store them or what is lost without them. */
  warning: string
  secrets: Secret[]
  fileName: string
  /** The heading of the downloaded file, which says what the secrets belong to. */
  fileHeading: string
  onClose: () => void
}

/**
 * The secrets exist only in this component, never in a query, URL, toast or storage, so they are gone once it closes. Escape and
 * a click outside never close it. Until the box is ticked, the back button does not either, and the browser asks before a reload.
 */
export function SecretsDialog({ title, warning, secrets, fileName, fileHeading, onClose }: Props) {
  const [isStored, setStored] = useState(false)
  const [shown, setShown] = useState<string[]>([])
  useBlocker({ shouldBlockFn: () => !isStored, enableBeforeUnload: () => !isStored, withResolver: false })
  const toggle = (name: string) => setShown((now) => (now.includes(name) ? now.filter((one) => one !== name) : [...now, name]))
  const file = () =>
    [
      fileHeading,
      `Created ${new Date().toISOString()}`,
      '',
      ...secrets.flatMap(({ name, value }) => [`${name}:`, value, '']),
    ].join('\n')

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
                {/* While masked, the value is not in the DOM at all. */}
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
          description="It cannot be shown again."
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
  // The download starts after this tick. Without revoking, the text would stay in memory as long as the page.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
