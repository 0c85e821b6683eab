import { Snippet } from '../snippet.tsx'

/** The service does not send email. On a local installation, the person is also the operator, so show the command itself. */
export function ForgottenPassword({ email, tokenFile }: { email: string; tokenFile: string | null }) {
  if (tokenFile === null) return <p className="small dim">Forgot your password? Ask the operator for a sign-in link.</p>
  return (
    <details className="small dim">
      <summary>Forgot your password?</summary>
      <p>
        Type your email address above; the command then contains it. Run the command on the machine that runs the service, as the
        user who started it. It prints JSON, whose <code>url</code> is a link that signs you in and lets you set a new password.
      </p>
      <Snippet code={commandFor(email.trim() || 'you@example.com', tokenFile)} label="Create a sign-in link" wraps />
      <p>
        Or create the link on the <a href="/dashboard/operator">operator’s pages</a>. Their sign-in page says where the token is.
      </p>
    </details>
  )
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The token goes through a pipe because other users of the machine can see a program's arguments. */
function commandFor(email: string, tokenFile: string): string {
  return [
    `sed 's/^/Authorization: Bearer /' ${quoted(tokenFile)} |`,
    `curl -s -H @- -H 'Content-Type: application/json' -d ${quoted(JSON.stringify({ email }))}`,
    `${window.location.origin}/operator/v1/sign-in-links`,
  ].join(' ')
}
