import { type BindOptions, type Body, type BodyLimits, type Bound, bindRequest, type HttpRequest } from '../binding.ts'
import { BodyBuffer } from '../body-buffer.ts'
import type { BodyMemory } from '../gate/body-memory.ts'
import type { PaymentFields } from '../visit.ts'

export function paymentFieldsOf(headers: Headers): PaymentFields {
  return {
    authorization: headers.get('authorization'),
    paymentAuthorization: headers.get('payment-authorization'),
    paymentSignature: headers.get('payment-signature'),
    acceptPayment: headers.get('accept-payment'),
    accept: headers.get('accept'),
  }
}

export const bindWebRequest =
  (request: Request) =>
  (options: BindOptions): Promise<Bound> => {
    const { origin, pathname, search } = new URL(request.url)
    const header = (name: string): string | null => request.headers.get(name)
    const { method } = request
    const body: HttpRequest['body'] = (limits) => bodyOf(request, limits)
    return bindRequest({ method, url: `${pathname}${search}`, origin, header, body }, options)
  }

/** The bytes of the body. The handler still gets its own copy. */
async function bodyOf(request: Request, { maxBodyBytes, bodyTimeoutMs, memory }: BodyLimits): Promise<Body> {
  if (request.bodyUsed) return 'consumed'
  if (request.body === null) return new Uint8Array()
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) return 'too_large'
  const reader = request.clone().body?.getReader()
  if (!reader) return new Uint8Array()
  const buffer = new BodyBuffer(maxBodyBytes, memory)
  const fits = countChunks(memory)
  // Not awaited, because it settles only when the handler's copy is cancelled too. A pending read ends at once.
  const cancel = (): void => void reader.cancel().catch(() => undefined)
  let isLate = false
  const stopTimer = buffer.expect(bodyTimeoutMs, () => {
    isLate = true
    cancel()
  })
  try {
    for (;;) {
      // No `Promise.race` with the timer: the timer's promise would keep every chunk in memory until the end of the body.
      const { done, value } = await reader.read()
      if (done && !isLate) return buffer.bytes
      const refusal = isLate || !value ? 'too_slow' : fits(value) ? buffer.add(value) : 'busy'
      if (!refusal) continue
      cancel()
      cutOff.add(request)
      return refusal
    }
  } finally {
    stopTimer()
  }
}

/** The memory that a chunk takes in the queue of the handler's copy, in addition to its bytes. */
const CHUNK_BYTES = 300
/** Not counted, because every body has some small chunks. */
const UNCOUNTED_BYTES = 65_536

/** Counts the memory for the small chunks of a body. The returned function says whether there is room for one more chunk. */
function countChunks(memory: BodyMemory): (chunk: Uint8Array) => boolean {
  let bytes = -UNCOUNTED_BYTES
  return ({ length }) => {
    bytes += Math.max(0, CHUNK_BYTES - length)
    if (bytes <= 0) return true
    const isReserved = memory.reserve(bytes)
    bytes = 0
    return isReserved
  }
}

const cutOff = new WeakSet<Request>()

/**
 * After a refusal: reads the rest of a partly read body, which would otherwise block the connection, or make the server reset it.
 */
export function discardBody(request: Request): void {
  if (cutOff.has(request)) void request.body?.pipeTo(new WritableStream()).catch(() => undefined)
}
