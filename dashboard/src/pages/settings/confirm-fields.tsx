import { Button, PasswordInput } from '@mantine/core'
import { IconFingerprint } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { canUsePasskeys, listPasskeys } from '../../api/auth.ts'
import { confirmWithPasskey, securityQuery } from '../../api/settings.ts'
import type { Me } from '../../api/types.ts'
import { CodeInput } from '../../components/people/code-input.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAction } from '../../components/use-action.ts'

type Props = { user: NonNullable<Me['user']>; password: string; onPassword: (password: string) => void; label?: string }

/** The proof of identity that is sent with a change. Empty if a passkey was used a moment ago. */
export function useProof() {
  const [password, setPassword] = useState('')
  const { data } = useQuery(securityQuery)
  const isConfirmed = data?.hasRecentPasskey === true
  const proof = (): { password?: string } => (isConfirmed ? {} : { password })
  return { password, setPassword, proof, isReady: isConfirmed || password !== '' }
}

/** A passkey replaces both factors, so a change of passkeys also needs a code if two-factor sign-in is on. */
export function useProofWithCode() {
  const { proof, isReady, ...rest } = useProof()
  const [code, setCode] = useState('')
  const { data } = useQuery(securityQuery)
  const needsCode = data?.twoFactor.isOn === true
  return {
    ...rest,
    code,
    setCode,
    needsCode,
    proof: (): { password?: string; code?: string } => ({ ...proof(), ...(needsCode ? { code } : {}) }),
    isReady: data !== undefined && isReady && (!needsCode || code.trim() !== ''),
  }
}

/** The fields for `useProofWithCode`. */
export function ConfirmFieldsWithCode({
  user,
  password,
  setPassword,
  code,
  setCode,
  needsCode,
}: { user: Props['user'] } & ReturnType<typeof useProofWithCode>) {
  return (
    <>
      <ConfirmFields user={user} password={password} onPassword={setPassword} />
      {needsCode && <CodeInput value={code} onChange={setCode} />}
    </>
  )
}

/** Asks for proof of identity again, because a session can be stolen, or a screen left unlocked. */
export function ConfirmFields({ user, password, onPassword, label = 'Your password' }: Props) {
  const { data: security } = useQuery(securityQuery)
  const passkeys = useQuery({ queryKey: ['passkeys'], queryFn: ({ signal }) => listPasskeys(signal) })
  const confirm = useAction(() => confirmWithPasskey(user.id))
  if (security?.hasRecentPasskey) return <p className="small dim">You have just confirmed with a passkey that it is you.</p>
  return (
    <>
      {/* Password managers need the email address to know which entry to use. */}
      <input type="hidden" name="email" autoComplete="username" value={user.email} readOnly />
      <PasswordInput
        label={label}
        description="To make sure that it is you."
        autoComplete="current-password"
        required
        withAsterisk={false}
        value={password}
        onChange={(event) => onPassword(event.currentTarget.value)}
      />
      {canUsePasskeys() && (passkeys.data?.length ?? 0) > 0 && (
        <Button
          variant="subtle"
          size="compact-sm"
          className="start"
          leftSection={<IconFingerprint size={16} aria-hidden />}
          loading={confirm.isPending}
          onClick={() => void confirm.run()}
        >
          Use a passkey instead
        </Button>
      )}
      <Problem error={confirm.error} what="The passkey was not used." />
    </>
  )
}
