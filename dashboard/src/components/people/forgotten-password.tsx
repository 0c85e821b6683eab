import { Snippet } from '../snippet.tsx'

/** No mail is sent. On one's own machine the operator is whoever sits in front of it, so they get the command itself. */
export function ForgottenPassword({ email, tokenFile }: { email: string; tokenFile: string | null }) {
  if (tokenFile === null) return <p className="small dim">Forgotten your password? Ask the operator for a sign-in link.</p>
  return (
    <details className="small dim">
      <summary>Forgotten your password?</summary>
      <p>
        Run this in a terminal on the machine that the service runs on, as the user who started it. It prints a link that signs
        you in and lets you set a new password.
      </p>
      <Snippet code={commandFor(email.trim() || 'you@example.com', tokenFile)} label="Make a sign-in link" wraps />
    </details>
  )
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The token goes through a pipe: other users of the machine can read the arguments of a program. */
function commandFor(email: string, tokenFile: string): string {
  return [
    `sed 's/^/Authorization: Bearer /' ${quoted(tokenFile)} |`,
    `curl -s -H @- -H 'Content-Type: application/json' -d ${quoted(JSON.stringify({ email }))}`,
    `${window.location.origin}/operator/v1/sign-in-links`,
  ].join(' ')
}
