import type { Delivery } from '../gate/delivery.ts'
import type { PaywallOptions } from '../options.ts'
import { lazyGate, type Ready } from './lazy-gate.ts'
import { argumentsText, challengeOf, headerOf, receiptOf } from './mcp-messages.ts'

/**
 * Payments for MCP tools, compatible with mppx: a call without payment gets JSON-RPC error -32042 with the challenges in `data`; the client
 * calls again with its credential in `_meta`; the result has the receipt in its own `_meta`.
 */
const PAYMENT_REQUIRED = -32042
const CREDENTIAL = 'org.paymentauth/credential'
const RECEIPT = 'org.paymentauth/receipt'
const HOW_TO_PAY =
  "Pay the Lightning invoice of one of the challenges in this error's data. " +
  `Then call the tool again with the credential in _meta["${CREDENTIAL}"].`

/** The parts of a handler's second argument that we use. */
export type ToolExtra = { _meta?: Record<string, unknown> | undefined; signal?: AbortSignal | undefined }
export type ToolResult = {
  content?: unknown[] | undefined
  isError?: boolean | undefined
  _meta?: Record<string, unknown> | undefined
}

export type ToolOptions<A> = Omit<PaywallOptions<A>, 'protocol' | 'l402' | 'singleUse' | 'options'> & {
  /**
   * The tool's name. Payments are bound to it: the default resource is `tools/call <name>`, plus the arguments if the price is a function.
   */
  tool: string
}

/**
 * Charges for a tool:
 * `server.registerTool('joke', { … }, chargeForTool({ tool: 'joke', nodeId, amountSat: 10 }, async (args, extra) => …))`.
 * MPP only: L402 is not defined for tools. Functions in the options get the tool's arguments.
 */
export function chargeForTool<P extends unknown[], T extends ToolResult>(
  options: ToolOptions<P[0]>,
  handler: (...parameters: P) => T | Promise<T>,
): ((...parameters: P) => Promise<T>) & Ready {
  const gate = lazyGate<P[0]>({ ...options, protocol: 'mpp' })
  const charged = async (...parameters: P): Promise<T> => {
    // The handler of a tool without arguments gets only `extra`.
    const extra = (parameters.at(-1) ?? {}) as ToolExtra
    const decision = await gate.decide({
      method: 'tools/call',
      route: options.tool,
      // The arguments take the place of a query, because a price function may depend on them.
      url: parameters.length > 1 ? `${options.tool} ${argumentsText(parameters[0])}` : options.tool,
      authorization: headerOf(extra._meta?.[CREDENTIAL]),
      signal: extra.signal,
      howToPay: HOW_TO_PAY,
      request: parameters[0],
    })
    if (decision.pass) return deliver(() => handler(...parameters), decision.delivery, extra.signal)
    const problem = JSON.parse(decision.body) as { detail: string }
    if (decision.status !== 402) return { isError: true, content: [{ type: 'text', text: problem.detail }] } as ToolResult as T
    const challenges = [decision.headers['WWW-Authenticate'] ?? []].flat().map(challengeOf)
    throw await paymentRequired(problem.detail, { httpStatus: 402, challenges, problem })
  }
  return Object.assign(charged, { ready: gate.ready })
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
    return { ...result, _meta: { ...result._meta, [RECEIPT]: receiptOf(receipt.value) } }
  } catch (error) {
    delivery.release('the tool failed')
    throw error
  }
}

/**
 * McpServer turns exceptions thrown by a tool into text for the model, and the challenge would be lost. It only passes through its own
 * error class with this code, so use that class. Other server implementations do not need it.
 */
async function paymentRequired(message: string, data: object): Promise<Error> {
  try {
    const { McpError } = await import('@modelcontextprotocol/sdk/types.js')
    return new McpError(PAYMENT_REQUIRED, message, data)
  } catch {
    return Object.assign(new Error(message), { code: PAYMENT_REQUIRED, data })
  }
}
