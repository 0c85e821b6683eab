import { type BindOptions, type Body, type Bound, bindRequest, type HttpRequest } from '../binding.ts'
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
    const body: HttpRequest['body'] = (maxBytes, _signal, memory) => bodyOf(request, maxBytes, memory)
    return bindRequest({ method, url: `${pathname}${search}`, origin, header, body }, options)
  }

/** The bytes of the body, of which the handler still gets its own copy. */
async function bodyOf(request: Request, maxBytes: number, memory: BodyMemory): Promise<Body> {
  if (request.bodyUsed) return 'consumed'
  if (request.body === null) return new Uint8Array()
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) return 'too_large'
  const reader = request.clone().body?.getReader()
  const buffer = new BodyBuffer(maxBytes, memory)
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) return buffer.bytes
    const refusal = buffer.add(value)
    if (!refusal) continue
    // Settles only when the handler's copy is cancelled too.
    void reader?.cancel().catch(() => undefined)
    cutOff.add(request)
    return refusal
  }
}

const cutOff = new WeakSet<Request>()

/** After a refusal: reads the rest of a body that was read in part. Left there, it would block the connection, or make the server reset it. */
export function discardBody(request: Request): void {
  if (cutOff.has(request)) void request.body?.pipeTo(new WritableStream()).catch(() => undefined)
}
