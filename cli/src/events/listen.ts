import type { AccountEvent } from '../../../sdk/src/index.ts'
import { importSecret, type SigningKey, sign } from '../../../sdk/src/webhooks/signature.ts'
import type { Call } from '../call.ts'
import { usage } from '../failure.ts'
import { sanitize } from '../terminal.ts'
import { USER_AGENT } from '../version.ts'
import { whyUnreachable } from '../waiting.ts'
import { lineOf } from './event-view.ts'
import { follow } from './following.ts'
import { listenSecret } from './listen-secret.ts'

/** As long as the service waits for the receiver of a webhook. */
const TIMEOUT_MS = 15_000

type Delivery = { status: number | null; durationMs: number; error?: string }

export async function listen(call: Call): Promise<void> {
  const secret = listenSecret()
  if (call.flag('print-secret')) {
    process.stdout.write(call.flag('json') ? `${JSON.stringify({ secret })}\n` : `${secret}\n`)
    return
  }
  const url = receiverOf(call)
  const key = await importSecret(secret)
  const ready = `Forwarding events to ${sanitize(url)}. To see the signing secret: boltyard listen --print-secret`
  await follow(call, { types: call.text('types') }, ready, async ({ cursor, ...event }) => {
    const delivery = await deliver(event, url, key, call.signal)
    if (call.signal.aborted) return
    const result = { eventId: event.id, type: event.type, ...delivery, cursor }
    call.printLine(result, () => lineOf(event, outcomeOf(delivery, call)))
  })
}

function receiverOf(call: Call): string {
  const given = call.text('forward-to')
  if (given === undefined) throw usage('--forward-to is required.', 'boltyard listen --forward-to http://localhost:3000/hook')
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) throw usage('--forward-to must be a URL such as http://localhost:3000/hook.')
  return url.href
}

async function deliver(event: AccountEvent, url: string, key: SigningKey, interrupted: AbortSignal): Promise<Delivery> {
  const body = JSON.stringify(event)
  const timestamp = String(Math.floor(Date.now() / 1000))
  const headers = {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'webhook-id': event.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': await sign({ id: event.id, timestamp, body }, key),
  }
  const late = AbortSignal.timeout(TIMEOUT_MS)
  const startedMs = performance.now()
  const durationMs = (): number => Math.round(performance.now() - startedMs)
  try {
    const signal = AbortSignal.any([interrupted, late])
    // Like the service, which does not follow redirects either.
    const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
    await response.body?.cancel()
    return { status: response.status, durationMs: durationMs() }
  } catch (error) {
    const why = late.aborted ? `no response within ${TIMEOUT_MS / 1000} s` : whyUnreachable(error) || 'no response'
    return { status: null, durationMs: durationMs(), error: why }
  }
}

function outcomeOf({ status, durationMs, error }: Delivery, { paint }: Call): string {
  const isDelivered = status !== null && status >= 200 && status < 300
  return `${paint(isDelivered ? 'green' : 'red', sanitize(String(status ?? error)))}  ${durationMs} ms`
}
