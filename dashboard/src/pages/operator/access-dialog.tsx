import { Button, Group, Modal, Stack, TextInput } from '@mantine/core'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { createInvitation, createSignInLink, type OneLink, type OperatorAccount } from '../../api/operator.ts'
import { CopyButton, copyText } from '../../components/copy-button.tsx'
import { Problem } from '../../components/problem.tsx'
import { Snippet } from '../../components/snippet.tsx'
import { useAction } from '../../components/use-action.ts'
import { explain } from '../../text/explanations.ts'
import { exact } from '../../text/format.ts'

type DialogProps = {
  title: ReactNode
  create: () => Promise<OneLink>
  onClose: () => void
  children: ReactNode
  /** The field for the address. It shows why the address was refused. */
  emailField?: (refusal: string | undefined) => ReactNode
}

/**
 * Describes the link that was created, because the account may have got an owner since the page was loaded. We do not verify
 * addresses, so an invitation is bound to its address, but not to the person who reads the mail there.
 */
export function whatNext({ kind, email }: Pick<OneLink, 'kind' | 'email'>): string {
  if (kind === 'sign-in') return `Send this link to ${email}. Whoever has it can sign in as ${email}.`
  if (kind === 'claim') return 'Send this link to the future owner. Whoever uses it becomes the owner.'
  return email === null
    ? 'Send this link to the person you invite. Whoever has it can sign up.'
    : `Send this link to ${email}. Only this address can sign up with it.`
}

/** The link exists only here: it is not stored, and a new one can be made at any time. */
function LinkDialog({ title, create, onClose, children, emailField }: DialogProps) {
  const [link, setLink] = useState<OneLink | null>(null)
  const [isCopied, setCopied] = useState(false)
  const make = useAction(async () => {
    const created = await create()
    // Shown first: the browser may refuse to copy, or ask the person.
    setLink(created)
    setCopied(await copyText(created.url))
  })
  const copyButton = useRef<HTMLButtonElement>(null)
  // The button that was pressed is gone, and the focus with it.
  useEffect(() => {
    if (link) copyButton.current?.focus()
  }, [link])
  const isTaken = make.error instanceof ApiError && make.error.code === 'account_exists'
  return (
    <Modal opened onClose={onClose} title={title} size="lg" closeOnClickOutside={link === null} closeOnEscape={link === null}>
      {link ? (
        <Stack gap="md">
          <p>
            <strong>
              {isCopied && 'Copied. '}
              {whatNext(link)}
            </strong>
          </p>
          <Snippet code={link.url} label="Link" wraps canCopy={false} />
          <p className="note small">
            It works once, until {exact(link.expiresAt)}. It is not shown again, but you can create another one.
          </p>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Done
            </Button>
            <CopyButton ref={copyButton} text={link.url} label="Copy link" withText variant="filled" />
          </Group>
        </Stack>
      ) : (
        <form
          onChange={make.onEdit}
          onSubmit={(event) => {
            event.preventDefault()
            void make.run()
          }}
        >
          <Stack gap="md">
            {children}
            {emailField?.(isTaken ? explain(make.error).why : undefined)}
            <Problem
              error={isTaken ? null : make.error}
              what="No link was created."
              again="If a link was created, nobody has it, and it expires in a day. Try again."
            />
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" loading={make.isPending}>
                Create and copy link
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  )
}

export function AccessDialog({ account, onClose }: { account: OperatorAccount; onClose: () => void }) {
  const [email] = account.emails
  return (
    <LinkDialog
      title={
        <>
          Give access to <bdi>{account.name}</bdi>
        </>
      }
      create={() => createSignInLink(account.id)}
      onClose={onClose}
    >
      {email ? (
        <>
          <p>
            This creates a link with which <strong dir="auto">{email}</strong> can sign in without a password and set a new one.
            The service sends no email: you pass the link on yourself.
          </p>
          <p className="note">
            Using the link turns off their two-factor sign-in, if it is on. They can set it up again in their settings.
          </p>
        </>
      ) : (
        <p>
          This account has no owner yet. Whoever uses the link becomes its owner, with an email address and password of their
          choice. The service sends no email: you pass the link on yourself.
        </p>
      )}
      {account.isTreasury && (
        <p className="note">
          <strong>This account receives what people pay for credit.</strong> Whoever uses the link controls its node and the money
          on it.
        </p>
      )}
    </LinkDialog>
  )
}

export function InviteDialog({ isOff, onClose }: { isOff: boolean; onClose: () => void }) {
  const [email, setEmail] = useState('')
  const address = email.trim()
  return (
    <LinkDialog
      title="Invite someone"
      create={() => createInvitation(address === '' ? undefined : address)}
      onClose={onClose}
      emailField={(refusal) => (
        <TextInput
          label="Email address (optional)"
          description="If you enter one, only this address can sign up with the link."
          type="email"
          autoComplete="off"
          data-autofocus
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          error={refusal}
          errorProps={{ role: 'alert' }}
        />
      )}
    >
      <p>
        This creates a link with which someone new can sign up and gets an account of their own. The service sends no email: you
        pass the link on yourself. For someone who already has an account, use “Give access…” in the list.
      </p>
      {isOff && <p className="note small">Invitations are turned off: the service runs with REGISTRATION=off.</p>}
    </LinkDialog>
  )
}
