import { Button, Group, Modal, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { queryClient } from '../../api/queries.ts'
import {
  beginTwoFactor,
  confirmTwoFactor,
  endTwoFactor,
  replaceRecoveryCodes,
  securityQuery,
  type TwoFactorSetup,
} from '../../api/settings.ts'
import type { Me } from '../../api/types.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { ConfirmDialog } from '../../components/dialogs/confirm-dialog.tsx'
import { SecretsDialog } from '../../components/dialogs/secrets-dialog.tsx'
import { announce } from '../../components/layout/announcer.tsx'
import { CodeInput } from '../../components/people/code-input.tsx'
import { Problem } from '../../components/problem.tsx'
import { QrCode } from '../../components/qr-code.tsx'
import { Time } from '../../components/time.tsx'
import { useAction } from '../../components/use-action.ts'
import { ConfirmFields, useProof } from './confirm-fields.tsx'

type Step = 'set up' | 'turn off' | 'replace' | null

const refresh = () => queryClient.invalidateQueries({ queryKey: securityQuery.queryKey })

export function TwoFactor({ user }: { user: NonNullable<Me['user']> }) {
  const security = useQuery(securityQuery)
  const [step, setStep] = useState<Step>(null)
  const [codes, setCodes] = useState<string[] | null>(null)
  const state = security.data?.twoFactor
  const close = () => setStep(null)
  const onCodes = (recoveryCodes: string[]) => {
    setCodes(recoveryCodes)
    setStep(null)
    void refresh()
  }
  return (
    <section className="card" aria-labelledby="two-factor">
      <h2 id="two-factor">Two-factor sign-in</h2>
      <p className="small dim">
        After your password, you also enter a code from an app on your phone. A passkey that checks your PIN, finger or face needs
        no code. If you lose your phone and your recovery codes, ask the operator for a sign-in link: it turns two-factor sign-in
        off.
      </p>
      {!security.data && (
        <Problem
          error={security.error}
          what="Whether two-factor sign-in is on could not be checked."
          onRetry={() => void security.refetch()}
        />
      )}
      {state && !state.isOn && (
        <Group mt="md">
          <span className="status status-idle">Off</span>
          <Button variant="default" onClick={() => setStep('set up')}>
            Set up…
          </Button>
        </Group>
      )}
      {state?.isOn && (
        <>
          <p>
            <span className="status status-good">On</span>{' '}
            {state.since !== null && (
              <span className="small dim">
                since <Time at={state.since} />
              </span>
            )}
          </p>
          <p className={state.recoveryCodesLeft < 3 ? 'note small' : 'small dim'}>
            {state.recoveryCodesLeft} of 10 recovery codes left.{' '}
            {state.recoveryCodesLeft < 3 && 'Replace them before you need one and have none.'}
          </p>
          <Group>
            <Button variant="default" onClick={() => setStep('replace')}>
              Replace recovery codes…
            </Button>
            <Button variant="default" onClick={() => setStep('turn off')}>
              Turn off…
            </Button>
          </Group>
        </>
      )}
      {step === 'set up' && <SetUp user={user} onCancel={close} onDone={onCodes} />}
      {step === 'replace' && <Replace onCancel={close} onDone={onCodes} />}
      {step === 'turn off' && <TurnOff onDone={close} />}
      {codes && (
        <SecretsDialog
          title="Store your recovery codes"
          warning="With one of these you can sign in without your phone. Each works once. Earlier ones no longer work."
          fileName="boltyard-recovery-codes.txt"
          fileHeading={`Recovery codes of ${user.email} at ${window.location.origin}`}
          secrets={[{ name: 'Recovery codes', value: codes.join('\n'), explanation: 'Keep them apart from your password.' }]}
          onClose={() => setCodes(null)}
        />
      )}
    </section>
  )
}

function SetUp({
  user,
  onCancel,
  onDone,
}: {
  user: NonNullable<Me['user']>
  onCancel: () => void
  onDone: (codes: string[]) => void
}) {
  const { password, setPassword, proof, isReady } = useProof()
  const [setup, setSetup] = useState<TwoFactorSetup | null>(null)
  const [code, setCode] = useState('')
  const begin = useAction(async () => setSetup(await beginTwoFactor(proof())))
  const confirm = useAction(async () => onDone((await confirmTwoFactor(code)).recoveryCodes))
  const isPending = begin.isPending || confirm.isPending
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void (setup ? confirm : begin).run()
  }
  const onChange = () => {
    begin.onEdit()
    confirm.onEdit()
  }
  return (
    <Modal opened onClose={onCancel} title="Set up two-factor sign-in" closeOnClickOutside={false} closeOnEscape={!isPending}>
      <form onSubmit={submit} onChange={onChange}>
        <Stack gap="md">
          {!setup && <ConfirmFields user={user} password={password} onPassword={setPassword} />}
          {setup && (
            <>
              <p>Scan this with an authenticator app, such as Aegis, 2FAS, Google Authenticator or a password manager.</p>
              <QrCode text={setup.uri} label="QR code for your authenticator app" keepsCase />
              <div>
                <div className="small dim">Or type this key into the app:</div>
                <Group gap={4} wrap="nowrap">
                  <code className="secret-key">{(setup.secret.match(/.{4}/g) ?? []).join(' ')}</code>
                  <CopyButton text={setup.secret} label="Copy the key" />
                </Group>
              </div>
              <CodeInput value={code} onChange={setCode} isFirstUse />
            </>
          )}
          <Problem
            error={begin.error ?? confirm.error}
            what="Two-factor sign-in is not on."
            again="Close this dialog. If it is shown as on, replace the recovery codes."
          />
          <Group justify="flex-end">
            <Button variant="default" disabled={isPending} onClick={onCancel}>
              Cancel
            </Button>
            <Button type="submit" loading={isPending} disabled={setup ? code.trim() === '' : !isReady}>
              {setup ? 'Turn on' : 'Continue'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

function Replace({ onCancel, onDone }: { onCancel: () => void; onDone: (codes: string[]) => void }) {
  const [code, setCode] = useState('')
  const replace = useAction(async () => onDone((await replaceRecoveryCodes(code)).recoveryCodes))
  return (
    <ConfirmDialog
      title="Replace the recovery codes?"
      verb="Replace"
      isPending={replace.isPending}
      isDisabled={code.trim() === ''}
      onCancel={onCancel}
      onConfirm={() => void replace.run()}
    >
      <p>You get ten new codes. The old ones stop working.</p>
      <CodeInput value={code} onChange={setCode} />
      <Problem
        error={replace.error}
        what="The recovery codes were not replaced."
        again="Replace them again with the next code."
      />
    </ConfirmDialog>
  )
}

function TurnOff({ onDone }: { onDone: () => void }) {
  const [code, setCode] = useState('')
  const end = useAction(async () => {
    await endTwoFactor(code)
    await refresh()
    onDone()
    announce('Two-factor sign-in is off')
  })
  return (
    <ConfirmDialog
      title="Turn off two-factor sign-in?"
      verb="Turn off"
      isDangerous
      isPending={end.isPending}
      isDisabled={code.trim() === ''}
      onCancel={onDone}
      onConfirm={() => void end.run()}
    >
      <p>From then on, your password alone is enough to sign in. The recovery codes stop working.</p>
      <CodeInput value={code} onChange={setCode} />
      <Problem error={end.error} what="Two-factor sign-in is still on." />
    </ConfirmDialog>
  )
}
