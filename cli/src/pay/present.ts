import { hasReceipt } from '../../../sdk/src/buy/presenting.ts'
import type { RepeatableRequest, Retry } from '../../../sdk/src/buy/request.ts'
import type { Paid } from '../../../sdk/src/buy/wallets/wallet.ts'
import type { Call } from '../call.ts'
import { type ExitName, Failure } from '../failure.ts'
import { sanitize, shellWord } from '../terminal.ts'
import { deliver, type Output, OutputFailure } from './answer.ts'
import { unanswered } from './request.ts'
import type { SavedPurchase } from './saved-purchase.ts'

/** Sends the request with the credential, and prints the response. */
export async function present(
  call: Call,
  request: RepeatableRequest,
  kept: SavedPurchase,
  output: Output,
  paid?: Paid,
): Promise<void> {
  call.spinner.show(`Fetching ${request.url.host}`)
  let response: Response
  try {
    const patienceMs = call.number('timeout') === undefined ? undefined : call.timeoutMs
    response = await request.present(kept.credential, patienceMs, onceTold(call, request, kept))
  } catch (error) {
    const cause = error instanceof Failure ? error : unanswered(request, error)
    throw undelivered(kept, cause.exit, cause.code, cause.message)
  }
  if (!response.ok) {
    const text = await response.text().catch(() => '')
    if (response.status !== 402)
      throw undelivered(
        kept,
        exitOf(response.status) ?? 'other',
        'not_delivered',
        `You paid, but the server returned HTTP ${response.status}${redirectOf(response) ?? `. ${text.slice(0, 300)}`}`,
      )
    if (paid)
      throw undelivered(
        kept,
        'conflict',
        'paid_again_refused',
        'You paid, but the server asks for payment again. No second payment was made.',
      )
    throw new Failure(
      'conflict',
      'credential_refused',
      `The server no longer accepts the credential in ${sanitize(kept.path)} and asks for a new payment.`,
      {
        next: [
          'It may have been used, have expired, or not be accepted yet.',
          'If you never got what you paid for, keep the file and ask the seller. To pay again, name another file.',
        ],
      },
    )
  }
  // If stdout fails, the process ends without coming back here.
  call.ifUnread = howToPresent(kept)
  try {
    await deliver(call, response, output, undefined, { kept: kept.purchase, paid })
  } catch (error) {
    if (error instanceof OutputFailure)
      throw undelivered(
        kept,
        'other',
        'output_failed',
        `You paid, but the response could not be written: ${error.reason}.`,
        error,
      )
    throw undelivered(
      kept,
      call.signal.aborted ? 'interrupted' : 'network',
      'cut_off',
      'You paid, but the response was cut off.',
      error,
    )
  }
  call.ifUnread = undefined
  if (!kept.isWanted) kept.remove()
  else if (kept.isOurs && isUsedUp(request, response, kept)) kept.removeUsedUp()
}

/** Reports the retries once, because without a terminal there is no spinner, and the server may be down for a long time. */
function onceTold(call: Call, { url }: RepeatableRequest, kept: SavedPurchase): (retry: Retry) => void {
  let isTold = false
  return ({ status, patienceMs }) => {
    const reason = status === undefined ? 'did not respond' : `returned HTTP ${status}`
    call.spinner.show(`${url.host} ${reason}; trying again`)
    if (isTold || (process.stderr.isTTY && !call.flag('json'))) return
    isTold = true
    const message = `${sanitize(url.host)} ${reason}. You paid, so the request is repeated for at most ${Math.round(patienceMs / 1000)} s.`
    process.stderr.write(`${JSON.stringify({ retrying: { message, credentialFile: kept.path } })}\n`)
  }
}

/** The redirect is only reported: following it could send the credential to another server. */
function redirectOf({ status, headers }: Response): string | undefined {
  const location = status < 400 ? headers.get('location') : null
  return location === null ? undefined : ` and redirects to ${sanitize(location)}`
}

const howToPresent = (kept: SavedPurchase): string[] => ['To present the same credential again without paying:', again(kept)]

function undelivered(kept: SavedPurchase, exit: ExitName, code: string, message: string, cause?: unknown): Failure {
  return new Failure(exit, code, message, {
    cause,
    next: howToPresent(kept),
    details: { paymentHash: kept.purchase.paymentHash, credentialFile: kept.path },
  })
}

/** An L402 credential may be valid for more responses, and HEAD and OPTIONS do not use a credential up. */
function isUsedUp({ method }: RepeatableRequest, response: Response, kept: SavedPurchase): boolean {
  const { header, credential } = kept.credential
  const isForOneResponse = header === 'payment-signature' || /^payment /i.test(credential)
  return method !== 'HEAD' && method !== 'OPTIONS' && isForOneResponse && hasReceipt(response)
}

export function exitOf(status: number): ExitName | undefined {
  if (status >= 200 && status < 300) return undefined
  return status === 404 ? 'notFound' : status === 429 ? 'rateLimited' : status >= 500 ? 'network' : 'other'
}

export const again = ({ purchase, path }: SavedPurchase): string =>
  `boltyard pay ${shellWord(purchase.url)} --credential-file ${shellWord(path)} (with the same other options)`
