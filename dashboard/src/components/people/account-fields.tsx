import { PasswordInput, TextInput } from '@mantine/core'

/** As the server has it; said before somebody types a shorter one. */
export const SHORTEST_PASSWORD = 10

type Props = {
  email: string
  onEmail?: (email: string) => void
  password: string
  onPassword: (password: string) => void
  passwordLabel?: string
}

/** Without `onEmail` the address is given and cannot be changed; it stays in the form so that password managers save the pair. */
export function AccountFields({ email, onEmail, password, onPassword, passwordLabel = 'Password' }: Props) {
  return (
    <>
      <TextInput
        label="Email"
        description={onEmail ? 'You sign in with it. No mail is sent.' : undefined}
        type="email"
        name="email"
        autoComplete="username"
        required
        withAsterisk={false}
        readOnly={!onEmail}
        value={email}
        onChange={(event) => onEmail?.(event.currentTarget.value)}
      />
      <PasswordInput
        label={passwordLabel}
        description={`At least ${SHORTEST_PASSWORD} characters, and not a common one.`}
        name="new-password"
        autoComplete="new-password"
        minLength={SHORTEST_PASSWORD}
        maxLength={128}
        required
        withAsterisk={false}
        value={password}
        onChange={(event) => onPassword(event.currentTarget.value)}
      />
    </>
  )
}
