import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Call } from './call.ts'
import { Failure, usage } from './failure.ts'
import { memberOf, objectIn, readSecret, readSecretOrInput } from './files.ts'
import { dataDirectory } from './local.ts'
import { nodeIdOf } from './nodes/node-id.ts'
import { sanitize, sat, sheet } from './terminal.ts'
import { wasNeverSent } from './waiting.ts'

/** Operator calls for play money. They are not in the SDK because they do not exist with real nodes. */

export async function fund(call: Call): Promise<void> {
  const amount = call.argument(1)
  if (!/^[1-9]\d{0,12}$/.test(amount)) throw usage('<sat> must be a whole number of satoshis.', 'boltyard sandbox fund --help')
  const path = `/sandbox/nodes/${encodeURIComponent(await nodeIdOf(call, call.argument(0)))}/fund`
  const advice = `The node may have been funded. To check, call /getbalance on the node’s own API.`
  const answer = await call.change(advice, () => operator<{ balanceSat: number }>(call, path, { amountSat: Number(amount) }))
  call.print(answer, () => sheet([['balance', sat(answer.balanceSat)]], call.paint))
}

export async function pay(call: Call): Promise<void> {
  const given =
    call.argument(0) === '-'
      ? memberOf(await readSecretOrInput('-', 'the invoice or the challenge', call.signal), 'challenge')
      : call.argument(0)
  const offer = /^ln/i.test(given) ? undefined : (await import('./pay/offers.ts')).usableOffers(given)[0]
  const invoice = offer?.invoiceText ?? given
  const advice = 'The invoice may have been paid. It is safe to run the command again: an invoice is paid only once.'
  const paid = await call.change(advice, () =>
    operator<{ paymentHash: string; preimage: string }>(call, '/sandbox/pay', { invoice }),
  )
  const credential = offer?.credentialFor(paid.preimage)
  call.print({ ...paid, ...(credential === undefined ? {} : { credential }) }, () =>
    sheet(
      [
        ['payment hash', sanitize(paid.paymentHash)],
        ['preimage', sanitize(paid.preimage)],
        ...(credential === undefined ? [] : [['credential', sanitize(credential)] as [string, string]]),
      ],
      call.paint,
    ),
  )
}

/** Pays as `sandbox pay` does. The operator token is read at once, so that a missing one is found before anything is done. */
export function sandboxWallet(call: Call): (invoice: string) => Promise<string> {
  operatorToken()
  return async (invoice) => (await operator<{ preimage: string }>(call, '/sandbox/pay', { invoice })).preimage
}

/** https://host/v1 → https://host/operator/v1 */
function operatorUrl(call: Call): string {
  const base = call.baseUrl.replace(/\/+$/, '')
  if (!URL.canParse(base) || !base.endsWith('/v1')) throw usage('The base URL must end in /v1.')
  return `${base.slice(0, -3)}/operator/v1`
}

async function operator<T>(call: Call, path: string, body: object): Promise<T> {
  const token = operatorToken()
  let response: Response
  try {
    response = await call.fetch(operatorUrl(call) + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'manual',
      signal: call.signal,
    })
  } catch (error) {
    if (error instanceof Failure || call.signal.aborted) throw call.signal.reason ?? error
    const what = wasNeverSent(error) ? 'could not be reached' : 'did not respond'
    throw new Failure('network', 'connection_failed', `The service at ${new URL(call.baseUrl).host} ${what}.`, {
      next: `Is the service running at ${call.baseUrl}? To start one on this machine: npm start`,
      cause: error,
    })
  }
  const answer = objectIn(await response.text().catch(() => ''))
  if (response.ok && answer) return answer as T
  throw refusal(response, (answer?.error ?? {}) as { code?: string; message?: string })
}

function refusal(
  { status, headers }: Response,
  { code = 'unexpected_answer', message }: { code?: string; message?: string },
): Failure {
  const more = { requestId: headers.get('x-request-id') ?? undefined, details: { status } }
  if (status === 401)
    return new Failure('key', code, 'The operator token is invalid.', {
      ...more,
      next: 'Check that it belongs to this service: OPERATOR_TOKEN, OPERATOR_TOKEN_FILE, or operator.token in its DATA_DIR.',
    })
  if (status === 404 && code === 'not_found') {
    return new Failure('notFound', code, 'This service has no sandbox, or its operator API is disabled.', more)
  }
  if (status < 400)
    return new Failure('other', code, `The response (HTTP ${status}) does not come from this API. Check the base URL.`, more)
  const exit =
    status === 404
      ? 'notFound'
      : status === 409
        ? 'conflict'
        : status === 429
          ? 'rateLimited'
          : status < 500
            ? 'usage'
            : 'network'
  return new Failure(exit, code, message ?? `The service returned HTTP ${status}.`, more)
}

function operatorToken(): string {
  const { OPERATOR_TOKEN, OPERATOR_TOKEN_FILE } = process.env
  if (OPERATOR_TOKEN) return OPERATOR_TOKEN.trim()
  if (OPERATOR_TOKEN_FILE) return readSecret(OPERATOR_TOKEN_FILE, 'the operator token')
  const path = join(dataDirectory(), 'operator.token')
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    throw new Failure(
      'key',
      'no_operator_token',
      `No operator token: OPERATOR_TOKEN and OPERATOR_TOKEN_FILE are not set, and ${path} cannot be read.`,
      {
        next: 'A service on this machine writes the token to its data directory. If that is elsewhere, set DATA_DIR.',
      },
    )
  }
}
