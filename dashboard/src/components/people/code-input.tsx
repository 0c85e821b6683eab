import { Button, TextInput } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'

type Props = { value: string; onChange: (code: string) => void; isFirstUse?: boolean; isFocused?: boolean }

/** A code of the authenticator app or, unless it is being set up, a recovery code. */
export function CodeInput({ value, onChange, isFirstUse = false, isFocused = false }: Props) {
  const [isRecovery, setRecovery] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  // This field replaces the one that had the focus, so it must get the focus. In dialogs, `data-autofocus` does that.
  useEffect(() => {
    if (isFocused) input.current?.focus()
  }, [isFocused])
  const toggle = () => {
    setRecovery(!isRecovery)
    onChange('')
  }
  return (
    <div>
      <TextInput
        ref={input}
        label={isRecovery ? 'Recovery code' : 'Code from your authenticator app'}
        description={isRecovery ? 'One of the ten you stored. Each works once.' : 'Six digits, new every 30 seconds.'}
        name={isRecovery ? 'recovery-code' : 'code'}
        autoComplete={isRecovery ? 'off' : 'one-time-code'}
        inputMode={isRecovery ? 'text' : 'numeric'}
        autoCapitalize="characters"
        spellCheck={false}
        maxLength={40}
        required
        withAsterisk={false}
        data-autofocus
        className="code-input"
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      {!isFirstUse && (
        <Button variant="subtle" size="compact-sm" mt={6} onClick={toggle}>
          {isRecovery ? 'Use the app instead' : 'Use a recovery code instead'}
        </Button>
      )}
    </div>
  )
}
