import type { RepeatableRequest } from '../../../sdk/src/buy/request.ts'
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
    response = await request.present(kept.credential, call.number('timeout') === undefined ? undefined : call.timeoutMs)
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
}

/** It is not followed, because it may lead to another server. */
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

export function exitOf(status: number): ExitName | undefined {
  if (status >= 200 && status < 300) return undefined
  return status === 404 ? 'notFound' : status === 429 ? 'rateLimited' : status >= 500 ? 'network' : 'other'
}

export const again = ({ purchase, path }: SavedPurchase): string =>
  `boltyard pay ${shellWord(purchase.url)} --credential-file ${shellWord(path)} (with the same other options)`
