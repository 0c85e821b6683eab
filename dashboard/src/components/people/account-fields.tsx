import { PasswordInput, TextInput } from '@mantine/core'

/** The server's minimum, shown before the form is submitted. */
export const SHORTEST_PASSWORD = 10

type Props = {
  email: string
  onEmail?: (email: string) => void
  password: string
  onPassword: (password: string) => void
  passwordLabel?: string
}

/** Without `onEmail`, the address is fixed. It stays in the form so that password managers save it with the password. */
export function AccountFields({ email, onEmail, password, onPassword, passwordLabel = 'Password' }: Props) {
  return (
    <>
      <TextInput
        label="Email"
        description={onEmail ? 'You sign in with it. We never send email.' : undefined}
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
        description={`At least ${SHORTEST_PASSWORD} characters, and not a common password.`}
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
