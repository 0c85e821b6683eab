import type { Delivery } from '../gate/delivery.ts'
import type { Decision, Pass } from '../gate/gate.ts'
import type { PaymentFields } from '../visit.ts'
import { challengeOf, headerOf, jsonOf, signatureOf } from './mcp-messages.ts'

/** What tools, resources and prompts have in common: the payment is in `_meta`, and the receipt in the `_meta` of the result. */

export const PAYMENT_REQUIRED = -32042
const VERIFICATION_FAILED = -32043
export const INVALID_PARAMS = -32602
const CREDENTIAL = 'org.paymentauth/credential'
const RECEIPTS = { 'payment-receipt': 'org.paymentauth/receipt', 'payment-response': 'x402/payment-response' }
const X402_PAYMENT = 'x402/payment'

/** The parts of a handler's last argument that we use. */
export type McpExtra = { _meta?: Record<string, unknown> | undefined; signal?: AbortSignal | undefined }
export type McpResult = { isError?: boolean | undefined; _meta?: Record<string, unknown> | undefined }
export type Refused = Exclude<Decision, Pass>
/** Options without a meaning in MCP. */
export type HttpOnly = 'l402' | 'singleUse' | 'options' | 'requiresAuth' | 'publicUrl' | 'bindHeaders' | 'maxBodyBytes' | 'html'
type Problem = { type: string; title: string; detail: string }

export const howToPay = (repeat: string): string =>
  `Pay the Lightning invoice of one of the challenges. Then ${repeat} again with the credential in _meta["${CREDENTIAL}"].`

export const paymentFieldsOf = ({ _meta }: McpExtra): PaymentFields => ({
  authorization: headerOf(_meta?.[CREDENTIAL]),
  paymentSignature: signatureOf(_meta?.[X402_PAYMENT]),
})

export const problemIn = ({ body }: Refused): Problem => JSON.parse(body)

/** The code and the data of a JSON-RPC error. */
export function paymentErrorOf(refused: Refused): { code: number; data: { challenges: object[]; [name: string]: unknown } } {
  const problem = problemIn(refused)
  const challenges = [refused.headers['WWW-Authenticate'] ?? []].flat().map(challengeOf)
  // The type of a conflict is always `about:blank`, so its title is used.
  const reason = problem.type === 'about:blank' ? problem.title.toLowerCase() : (problem.type.split('/').at(-1) ?? '')
  const code = codeOf(reason)
  const failure = code === PAYMENT_REQUIRED ? {} : { failure: { reason, detail: problem.detail } }
  return { code, data: { httpStatus: refused.status, challenges, problem, ...failure } }
}

function codeOf(reason: string): number {
  if (reason === 'payment-required') return PAYMENT_REQUIRED
  return ['malformed-credential', 'invalid-payload', 'bad-request'].includes(reason) ? INVALID_PARAMS : VERIFICATION_FAILED
}

/** `noun` is what the handler implements, such as `tool`, for the reason of a failed delivery. */
export async function deliver<T extends McpResult>(
  noun: string,
  work: () => T | Promise<T>,
  delivery: Delivery | undefined,
  left: AbortSignal | undefined,
): Promise<T> {
  if (!delivery) return work()
  try {
    const result = await work()
    if (result.isError) delivery.release(`the ${noun} answered with an error`)
    else if (left?.aborted && delivery.releaseOnDisconnect) delivery.release('the caller left before the answer')
    else delivery.deliver()
    const receipt = delivery.receiptFor(200)
    if (receipt === undefined) return result
    return { ...result, _meta: { ...result._meta, [RECEIPTS[receipt.header]]: jsonOf(receipt.value) } }
  } catch (error) {
    delivery.release(`the ${noun} failed`)
    throw error
  }
}
