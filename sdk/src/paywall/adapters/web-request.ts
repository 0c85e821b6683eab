import { type BindOptions, type Body, type BodyLimits, type Bound, bindRequest, type HttpRequest } from '../binding.ts'
import { BodyBuffer } from '../body-buffer.ts'
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

/** The bytes of the body, of which the handler still gets its own copy. */
async function bodyOf(request: Request, { maxBodyBytes, bodyTimeoutMs, memory }: BodyLimits): Promise<Body> {
  if (request.bodyUsed) return 'consumed'
  if (request.body === null) return new Uint8Array()
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) return 'too_large'
  const reader = request.clone().body?.getReader()
  if (!reader) return new Uint8Array()
  const buffer = new BodyBuffer(maxBodyBytes, memory)
  let stopTimer = (): void => undefined
  const late = new Promise<'too_slow'>((resolve) => {
    stopTimer = buffer.expect(bodyTimeoutMs, () => resolve('too_slow'))
  })
  try {
    for (;;) {
      const read = await Promise.race([late, reader.read()])
      if (read !== 'too_slow' && read.done) return buffer.bytes
      const refusal = read === 'too_slow' ? read : buffer.add(read.value)
      if (!refusal) continue
      // Settles only when the handler's copy is cancelled too.
      void reader.cancel().catch(() => undefined)
      cutOff.add(request)
      return refusal
    }
  } finally {
    stopTimer()
  }
}

const cutOff = new WeakSet<Request>()

/** After a refusal: reads the rest of a body that was read in part. Left there, it would block the connection, or make the server reset it. */
export function discardBody(request: Request): void {
  if (cutOff.has(request)) void request.body?.pipeTo(new WritableStream()).catch(() => undefined)
}
