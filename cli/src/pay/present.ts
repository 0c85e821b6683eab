import type { Call } from '../call.ts'
import { type ExitName, Failure } from '../failure.ts'
import { sanitize, shellWord } from '../terminal.ts'
import { sleep, wasNeverSent } from '../waiting.ts'
import { deliver, type Output, OutputFailure } from './answer.ts'
import type { PaidRequest } from './request.ts'
import type { SavedPurchase } from './saved-purchase.ts'
import type { Paid } from './wallet.ts'

/** How long to keep retrying a server that responds with 503 or 429, unless --timeout is set. */
const PATIENCE_MS = 90_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 8_000

/** Sends the request with the credential, and prints the response. */
export async function present(call: Call, request: PaidRequest, kept: SavedPurchase, output: Output, paid?: Paid): Promise<void> {
  call.spinner.show(`Fetching ${request.url.host}`)
  let response: Response
  try {
    response = await untilHeard(call, request, kept.purchase.credential ?? '')
  } catch (error) {
    const cause = error instanceof Failure ? error : request.unanswered(error)
    throw undelivered(kept, cause.exit, cause.code, cause.message)
  }
  if (!response.ok) {
    const text = await response.text().catch(() => '')
    if (response.status !== 402)
      throw undelivered(
        kept,
        exitOf(response.status) ?? 'other',
        'not_delivered',
        `You paid, but the server returned HTTP ${response.status}. ${text.slice(0, 300)}`,
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

const howToPresent = (kept: SavedPurchase): string[] => ['To present the same credential again without paying:', again(kept)]

function undelivered(kept: SavedPurchase, exit: ExitName, code: string, message: string, cause?: unknown): Failure {
  return new Failure(exit, code, message, {
    cause,
    next: howToPresent(kept),
    details: { paymentHash: kept.purchase.paymentHash, credentialFile: kept.path },
  })
}

/**
 * Retries 429, and 503 if the server says when. Also retries after a lost response or another 503, if the request is safe to repeat: a
 * proxy may have sent that 503 although the server got the request.
 */
async function untilHeard(call: Call, request: PaidRequest, credential: string): Promise<Response> {
  const deadline = performance.now() + (call.number('timeout') === undefined ? PATIENCE_MS : call.timeoutMs)
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    const answer = await request.send(credential).catch((error: unknown) => {
      if (call.signal.aborted || !(request.isRepeatable || wasNeverSent(error))) throw error
      return { error }
    })
    const seconds = 'status' in answer ? Number(answer.headers.get('retry-after') ?? Number.NaN) : Number.NaN
    const isRetried =
      'error' in answer ||
      answer.status === 429 ||
      (answer.status === 503 && (request.isRepeatable || answer.headers.has('retry-after')))
    const waitMs = Number.isFinite(seconds) && seconds >= 0 ? Math.max(seconds * 1000, pauseMs) : pauseMs
    if (!isRetried || performance.now() + waitMs > deadline) {
      if ('error' in answer) throw answer.error
      return answer
    }
    if ('status' in answer) await answer.body?.cancel()
    await sleep(waitMs, call.signal)
  }
}

export function exitOf(status: number): ExitName | undefined {
  if (status >= 200 && status < 300) return undefined
  return status === 404 ? 'notFound' : status === 429 ? 'rateLimited' : status >= 500 ? 'network' : 'other'
}

export const again = ({ purchase, path }: SavedPurchase): string =>
  `boltyard pay ${shellWord(purchase.url)} --credential-file ${shellWord(path)} (with the same other options)`
