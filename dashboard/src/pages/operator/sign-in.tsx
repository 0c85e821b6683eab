import { Button, PasswordInput, Stack } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { type FormEvent, useRef, useState } from 'react'
import { ApiError, isWrongOrigin } from '../../api/client.ts'
import { signInAsOperator } from '../../api/operator.ts'
import { meQuery } from '../../api/queries.ts'
import { Gate } from '../../components/layout/gate.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Problem } from '../../components/problem.tsx'
import { Snippet } from '../../components/snippet.tsx'
import { useAction } from '../../components/use-action.ts'
import { MAKE_TOKEN, printToken } from '../../text/code/snippets.ts'
import { OperatorLabel } from './shell.tsx'

/** The token is exchanged for a session, and is then forgotten. */
export function OperatorSignIn() {
  const { data: me } = useSuspenseQuery(meQuery)
  const [token, setToken] = useState('')
  const field = useRef<HTMLInputElement>(null)
  const enter = useAction(() => signInAsOperator(token))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void enter.run()
  }
  return (
    <Gate title="Sign in as the operator" label={<OperatorLabel />}>
      <form onSubmit={submit} onChange={enter.onEdit}>
        <Stack gap="md">
          <PasswordInput
            label="Operator token"
            name="operator-token"
            autoComplete="off"
            required
            withAsterisk={false}
            ref={field}
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
          />
          <Problem
            error={enter.error}
            what="You are not signed in."
            again="Check your connection and try again."
            {...nextOf(enter.error)}
          />
          <Button type="submit" fullWidth loading={enter.isPending}>
            Sign in
          </Button>
        </Stack>
      </form>
      <Where file={me.operatorTokenFile} onCopied={() => field.current?.focus()} />
      <p className="small dim">
        This page does not keep the token; if the browser offers to save it, refuse. You are signed in for two hours. Not the
        operator? <TextLink to="/">Go to your dashboard</TextLink>.
      </p>
    </Gate>
  )
}

function Where({ file, onCopied }: { file: string | null; onCopied: () => void }) {
  if (file === null)
    return (
      <p className="small dim">
        The token is what the service was started with: the value of <code>OPERATOR_TOKEN</code>, or the content of the file that{' '}
        <code>OPERATOR_TOKEN_FILE</code> names.
      </p>
    )
  return (
    <div className="small dim">
      <p>The token is in a file on this machine. This command prints it:</p>
      <Snippet code={printToken(file)} label="Print the operator token" wraps onCopied={onCopied} />
    </div>
  )
}

export function NoToken() {
  return (
    <Gate title="The operator’s pages are off" label={<OperatorLabel />}>
      <p>This service has no operator token, so nobody can sign in here, and the operator API does not exist.</p>
      <p>
        To turn both on, set <code>OPERATOR_TOKEN</code>, or <code>OPERATOR_TOKEN_FILE</code> with the path of a file, to at least
        32 random characters, and restart the service. This command makes such a token:
      </p>
      <Snippet code={MAKE_TOKEN} label="Make a token" wraps />
      <p className="small dim">
        Not the operator? <TextLink to="/">Go to your dashboard</TextLink>.
      </p>
    </Gate>
  )
}

/** The usual advice for a 401 is to sign in, which does not help here. */
function nextOf(error: unknown): { next?: string } {
  if (!(error instanceof ApiError) || isWrongOrigin(error)) return {}
  if (error.status === 401)
    return { next: 'Copy the whole token, without quotation marks and with nothing after it, and try again.' }
  return error.status === 429 ? { next: error.message } : {}
}
