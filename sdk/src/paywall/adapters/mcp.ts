import { bindMcp } from '../../../../protocol/src/x402-binding.ts'
import type { Bound } from '../binding.ts'
import { sha256Bytes } from '../digest.ts'
import type { PaywallOptions } from '../options.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { argumentsText, jsonOf } from './mcp-messages.ts'
import {
  deliver,
  type HttpOnly,
  howToPay,
  type McpExtra,
  PAYMENT_REQUIRED,
  paymentErrorOf,
  paymentFieldsOf,
  problemIn,
  type Refused,
} from './mcp-payment.ts'
import { sentArguments, withCode } from './mcp-server.ts'

export { chargeForPrompt, chargeForResource, type PromptOptions } from './mcp-reads.ts'
export { acceptPayments } from './mcp-server.ts'

/**
 * Payments for MCP tools, compatible with mppx: a call without payment gets JSON-RPC error -32042 with the challenges in `data`;
 * the client calls again with its credential in `_meta`; the result has the receipt in its own `_meta`. With x402, there is no
 * error: the requirements are in a result, which then also has the challenges.
 */
const CHALLENGES = 'org.paymentauth/payment-required'
const HOW_TO_PAY = howToPay('call the tool')

export type ToolExtra = McpExtra
export type ToolResult = {
  content?: unknown[] | undefined
  isError?: boolean | undefined
  structuredContent?: Record<string, unknown> | undefined
  _meta?: Record<string, unknown> | undefined
}

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
      ...paymentFieldsOf(extra),
      bind: () => bindCall(options, sentArguments(extra, given), extra._meta),
      signal: extra.signal,
      howToPay: HOW_TO_PAY,
      request: parameters[0],
    })
    if (decision.pass) return deliver('tool', () => handler(...parameters), decision.delivery, extra.signal)
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

/** Returns a result for the model to read, or throws a payment error. */
async function refusal(refused: Refused): Promise<ToolResult> {
  const { detail } = problemIn(refused)
  const text = (content: string): ToolResult['content'] => [{ type: 'text', text: content }]
  if (refused.status !== 402) return { isError: true, content: text(detail) }
  const { code, data } = paymentErrorOf(refused)
  const x402 = refused.headers['PAYMENT-REQUIRED']
  if (typeof x402 !== 'string') throw withCode(await paymentError(detail, data), code)
  const required = jsonOf(x402) as Record<string, unknown>
  const meta = data.challenges.length > 0 ? { _meta: { [CHALLENGES]: data } } : {}
  return { isError: true, structuredContent: required, content: text(JSON.stringify(required)), ...meta }
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
