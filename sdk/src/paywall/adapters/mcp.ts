import { bindMcp } from '../../../../protocol/src/x402-binding.ts'
import type { Bound } from '../binding.ts'
import { sha256Bytes } from '../digest.ts'
import type { Delivery } from '../gate/delivery.ts'
import type { Decision, Pass } from '../gate/gate.ts'
import type { PaywallOptions } from '../options.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { argumentsText, challengeOf, headerOf, jsonOf, signatureOf } from './mcp-messages.ts'
import { sentArguments, withCode } from './mcp-server.ts'

export { acceptPayments } from './mcp-server.ts'

/**
 * Payments for MCP tools, compatible with mppx: a call without payment gets JSON-RPC error -32042 with the challenges in `data`; the client
 * calls again with its credential in `_meta`; the result has the receipt in its own `_meta`. x402 has no errors: what it requires is in a
 * result, which then also has the challenges.
 */
const PAYMENT_REQUIRED = -32042
const VERIFICATION_FAILED = -32043
const INVALID_PARAMS = -32602
const CREDENTIAL = 'org.paymentauth/credential'
const CHALLENGES = 'org.paymentauth/payment-required'
const RECEIPTS = { 'payment-receipt': 'org.paymentauth/receipt', 'payment-response': 'x402/payment-response' }
const X402_PAYMENT = 'x402/payment'
const HOW_TO_PAY =
  'Pay the Lightning invoice of one of the challenges. ' +
  `Then call the tool again with the credential in _meta["${CREDENTIAL}"].`

/** The parts of a handler's second argument that we use. */
export type ToolExtra = { _meta?: Record<string, unknown> | undefined; signal?: AbortSignal | undefined }
export type ToolResult = {
  content?: unknown[] | undefined
  isError?: boolean | undefined
  structuredContent?: Record<string, unknown> | undefined
  _meta?: Record<string, unknown> | undefined
}

type HttpOnly = 'l402' | 'singleUse' | 'options' | 'requiresAuth' | 'publicUrl' | 'bindHeaders' | 'maxBodyBytes' | 'html'
export type ToolOptions<A> = Omit<PaywallOptions<A>, 'protocol' | 'protocols' | HttpOnly> & {
  /**
   * The tool's name. Payments are bound to it: the default resource is `tools/call <name>`, plus the arguments if the price is a function.
   */
  tool: string
  /** L402 is not defined for tools. Default: `['mpp']`. */
  protocols?: readonly ('mpp' | 'x402')[] | undefined
  /** x402: the URI that clients have configured for this server. */
  server?: string | undefined
  /** x402: the members of `_meta` that change what is sold. */
  bindMetadata?: readonly string[] | undefined
}

/**
 * Charges for a tool:
 * `server.registerTool('joke', { … }, chargeForTool({ tool: 'joke', nodeId, amountSat: 10 }, async (args, extra) => …))`.
 * Functions in the options get the tool's arguments.
 */
export function chargeForTool<P extends unknown[], T extends ToolResult>(
  options: ToolOptions<P[0]>,
  handler: (...parameters: P) => T | Promise<T>,
): ((...parameters: P) => Promise<T>) & Ready {
  const { protocols = ['mpp'], tool } = options
  const gate = lazyGate<P[0]>({ ...options, protocols })
  const charged = async (...parameters: P): Promise<T> => {
    // The handler of a tool without arguments gets only `extra`.
    const extra = (parameters.at(-1) ?? {}) as ToolExtra
    const given = parameters.length > 1 ? parameters[0] : undefined
    const decision = await gate.decide({
      method: 'tools/call',
      route: tool,
      // The arguments take the place of a query, because a price function may depend on them.
      url: parameters.length > 1 ? `${tool} ${argumentsText(given)}` : tool,
      authorization: headerOf(extra._meta?.[CREDENTIAL]),
      paymentSignature: signatureOf(extra._meta?.[X402_PAYMENT]),
      bind: () => bindCall(options, sentArguments(extra, given), extra._meta),
      signal: extra.signal,
      howToPay: HOW_TO_PAY,
      request: parameters[0],
    })
    if (decision.pass) return deliver(() => handler(...parameters), decision.delivery, extra.signal)
    return (await refusal(decision)) as T
  }
  return Object.assign(charged, { ready: gate.ready })
}

async function bindCall<A>({ server, tool, bindMetadata = [] }: ToolOptions<A>, given: unknown, meta: unknown): Promise<Bound> {
  if (server === undefined) return { unbound: 'no_url' }
  const call = { server, name: tool, arguments: given, meta }
  const binding = await bindMcp({ sha256: sha256Bytes }, call, [...bindMetadata].sort())
  return binding ? { resource: { url: `mcp://tool/${encodeURIComponent(tool)}` }, ...binding } : { unbound: 'unusable' }
}

/** A result for the model to read or, as a payment error, an exception. */
async function refusal({ status, headers, body }: Exclude<Decision, Pass>): Promise<ToolResult> {
  const problem = JSON.parse(body) as { type: string; detail: string }
  const text = (content: string): ToolResult['content'] => [{ type: 'text', text: content }]
  if (status !== 402) return { isError: true, content: text(problem.detail) }
  const challenges = [headers['WWW-Authenticate'] ?? []].flat().map(challengeOf)
  const reason = problem.type.split('/').at(-1) ?? ''
  const code = codeOf(reason)
  const failure = code === PAYMENT_REQUIRED ? {} : { failure: { reason, detail: problem.detail } }
  const data = { httpStatus: 402, challenges, problem, ...failure }
  const x402 = headers['PAYMENT-REQUIRED']
  if (typeof x402 !== 'string') throw withCode(await paymentError(problem.detail, data), code)
  const required = jsonOf(x402) as Record<string, unknown>
  const meta = challenges.length > 0 ? { _meta: { [CHALLENGES]: data } } : {}
  return { isError: true, structuredContent: required, content: text(JSON.stringify(required)), ...meta }
}

function codeOf(reason: string): number {
  if (reason === 'payment-required') return PAYMENT_REQUIRED
  return reason === 'malformed-credential' || reason === 'invalid-payload' ? INVALID_PARAMS : VERIFICATION_FAILED
}

async function deliver<T extends ToolResult>(
  work: () => T | Promise<T>,
  delivery: Delivery | undefined,
  left: AbortSignal | undefined,
): Promise<T> {
  if (!delivery) return work()
  try {
    const result = await work()
    if (result.isError) delivery.release('the tool answered with an error')
    else if (left?.aborted && delivery.releaseOnDisconnect) delivery.release('the caller left before the answer')
    else delivery.deliver()
    const receipt = delivery.receiptFor(200)
    if (receipt === undefined) return result
    return { ...result, _meta: { ...result._meta, [RECEIPTS[receipt.header]]: jsonOf(receipt.value) } }
  } catch (error) {
    delivery.release('the tool failed')
    throw error
  }
}

/**
 * McpServer turns exceptions thrown by a tool into text for the model, and the challenge would be lost. It only passes through its own
 * error class with this code, so use that class. Other server implementations do not need it.
 */
async function paymentError(message: string, data: object): Promise<Error> {
  try {
    const { McpError } = await import('@modelcontextprotocol/sdk/types.js')
    return new McpError(PAYMENT_REQUIRED, message, data)
  } catch {
    return Object.assign(new Error(message), { code: PAYMENT_REQUIRED, data })
  }
}
