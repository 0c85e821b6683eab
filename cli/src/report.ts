import type { BoltyardError } from '../../sdk/src/index.ts'
import type { Call } from './call.ts'
import { EXIT, type ExitName, Failure } from './failure.ts'
import { isSystemError, reasonOf } from './files.ts'
import { painter, sanitize, sat, shellWord } from './terminal.ts'

/** Prints the error to stderr and returns the exit code. */
export async function report(error: unknown, call: Call | undefined): Promise<number> {
  const failure = await explain(error, call)
  const help = failure.code === 'usage' && failure.next.length === 0 && call ? [`boltyard ${call.command.path} --help`] : []
  const next = [...failure.next, ...help, ...(call?.adviceIfUnknown ?? [])]
  const isUnknown = call?.isUnknown && call.adviceIfUnknown.length > 0
  call?.spinner.stop()
  process.stderr.write(
    process.stderr.isTTY && !call?.flag('json') ? forPeople(failure, next) : forScripts(failure, next, isUnknown),
  )
  return EXIT[failure.exit]
}

function forScripts({ code, message, requestId, details, isList }: Failure, next: string[], isUnknown = false): string {
  const more = {
    ...(requestId === undefined ? {} : { requestId }),
    ...(next.length === 0 ? {} : { next: next.join(isList ? '\n' : ' ') }),
  }
  return `${JSON.stringify({ error: { code, message, ...more, ...details, ...(isUnknown ? { outcome: 'unknown' } : {}) } })}\n`
}

function forPeople({ message, requestId }: Failure, next: string[]): string {
  const paint = painter(process.stderr)
  const lines = [`${paint('red', 'boltyard:')} ${sanitize(message)}`, ...next.map((line) => `  ${sanitize(line)}`)]
  if (requestId !== undefined) lines.push(paint('dim', `  request id ${sanitize(requestId)}`))
  return `${lines.join('\n')}\n`
}

async function explain(error: unknown, call: Call | undefined): Promise<Failure> {
  if (error instanceof Failure) return error
  if (isFromSdk(error)) return explainAnswer(error, call)
  if (isSystemError(error)) return new Failure('other', 'system', `${error.path ?? error.syscall}: ${reasonOf(error)}.`)
  return new Failure('other', 'bug', `Internal error in boltyard: ${error instanceof Error ? error.message : String(error)}`, {
    next: process.env.DEBUG && error instanceof Error ? [error.stack ?? ''] : [],
  })
}

/** Checks the shape, not the class: importing the class would load the SDK even for a mistyped option. */
const isFromSdk = (error: unknown): error is BoltyardError => error instanceof Error && 'requestId' in error && 'details' in error

const BY_CODE: Record<string, ExitName> = {
  invalid_node_state: 'conflict',
  no_update_available: 'conflict',
  payment_expired: 'conflict',
  uncertain_outcome: 'network',
  timeout: 'network',
  connection_failed: 'network',
  node_failed: 'conflict',
  node_stopped: 'conflict',
}
const BY_STATUS: Record<number, ExitName> = {
  401: 'key',
  402: 'credit',
  404: 'notFound',
  409: 'conflict',
  410: 'conflict',
  429: 'rateLimited',
}

function exitOf({ code, status, details }: BoltyardError): ExitName {
  if (details.reason === 'not_settled') return 'conflict'
  const known = BY_CODE[code] ?? BY_STATUS[status ?? 0]
  if (known) return known
  if (status === undefined || code === 'unexpected_answer') return status !== undefined && status >= 500 ? 'network' : 'other'
  // 502 and 503 are temporary, like an unreachable service; 500 may not be.
  return status < 500 ? 'usage' : status === 500 ? 'other' : 'network'
}

async function explainAnswer(error: BoltyardError, call: Call | undefined): Promise<Failure> {
  const { code, message, requestId, status } = error
  // Both are left out; the advice contains them where they are needed. The idempotency key, together with the API key, retrieves
  // a node's credentials, so it stays out of logs; the request id of a redemption would replace the id of the HTTP request.
  const { requestId: _, idempotencyKey: __, ...details } = error.details
  const more = { requestId, details: { ...(status === undefined ? {} : { status }), ...details }, cause: error }
  const failure = (text: string, next: string[]): Failure => new Failure(exitOf(error), code, text, { ...more, next })
  if (status === 401) return explainRefusal(failure, call)
  return failure(message, nextAfter(error, call))
}

/** The service returns the same 401 for an invalid key and for a missing scope. Asking for the key's scopes shows which one it was. */
async function explainRefusal(failure: (text: string, next: string[]) => Failure, call: Call | undefined): Promise<Failure> {
  const { scope } = call?.command ?? {}
  const key =
    scope && call ? await (await call.client()).key({ signal: AbortSignal.timeout(5_000) }).catch(() => undefined) : undefined
  if (key && scope && !key.scopes.includes(scope)) {
    return failure(`This API key lacks the scope ${scope}. It has ${key.scopes.join(', ')}.`, [
      'Create a key with this scope in the dashboard under Developers > API keys.',
    ])
  }
  return failure('The API key is unknown, disabled or revoked.', [
    `It was sent to ${call?.baseUrl}. Check that the key belongs to that service.`,
  ])
}

function nextAfter({ code, details }: BoltyardError, call: Call | undefined): string[] {
  const [group] = call?.command.path.split(' ') ?? []
  switch (code) {
    case 'connection_failed':
      return [`Is the service running at ${call?.baseUrl}? To start one on this machine: npm start`]
    case 'insufficient_credit':
      return creditNext(details.topUp)
    case 'node_has_funds':
      return [
        'Send the funds elsewhere first, or delete the node anyway with --force. Its data is kept for the retention period.',
      ]
    case 'node_not_found':
      return ['List the account’s nodes: boltyard nodes list']
    case 'gateway_payment_not_found':
      return ['List the account’s payments: boltyard payments list']
    case 'cursor_expired':
      return typeof details.oldestCursor === 'string'
        ? [`To list the events that are still kept: --after ${details.oldestCursor}`]
        : []
    case 'invalid_node_state':
    case 'operation_in_progress':
    case 'node_failed':
    case 'node_stopped':
    case 'uncertain_outcome':
      return statusNext(group === 'nodes' ? call?.positionals[0] : group === 'payments' ? call?.text('node') : undefined)
    case 'not_found':
      return group === 'webhooks' ? ['List the account’s webhooks: boltyard webhooks list'] : []
    case 'invalid_payment_credential':
      return details.reason === 'not_settled'
        ? ['The credential is correct, but the node has not received the money yet. Try again shortly.']
        : []
    default:
      return []
  }
}

/** A command that is not about one node, such as `webhooks create`, gives its own advice. */
const statusNext = (node: string | undefined): string[] =>
  node === undefined ? [] : [`Check its status: boltyard nodes get ${shellWord(node)}`]

function creditNext(topUp: unknown): string[] {
  const { amountSat, invoice } = (topUp ?? {}) as { amountSat?: number; invoice?: string }
  if (invoice === undefined) return ['Buy credit in the dashboard under Credit.']
  return [`Pay this invoice (${sat(amountSat ?? 0)}) to add credit, then run the command again:`, invoice]
}
