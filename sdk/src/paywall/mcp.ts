import type { RedeemedPayment } from '../types.ts'
import { Gate, type PaywallOptions } from './gate.ts'
import { challengeOf, headerOf, receiptOf } from './mcp-messages.ts'

/**
 * Payments for MCP tools, as mppx has them: a call without payment is answered with JSON-RPC error -32042, whose data holds the challenges;
 * the client calls again with its credential in `_meta`; the result carries the receipt in its own `_meta`.
 */
const PAYMENT_REQUIRED = -32042
const CREDENTIAL = 'org.paymentauth/credential'
const RECEIPT = 'org.paymentauth/receipt'

/** What a handler is told beside its arguments, as far as it is needed here. */
export type ToolExtra = { _meta?: Record<string, unknown> | undefined; signal?: AbortSignal | undefined }
export type ToolResult = {
  content?: unknown[] | undefined
  isError?: boolean | undefined
  _meta?: Record<string, unknown> | undefined
}

export type ToolOptions<A> = Omit<PaywallOptions<A>, 'protocol' | 'singleUse'> & {
  /** Its name: a payment for one tool must not buy another. The description is `tools/call <name>` unless given. */
  tool: string
}

/**
 * `server.registerTool('joke', { … }, chargeForTool({ tool: 'joke', nodeId, amountSat: 10 }, async (args, extra) => …))`. MPP only: L402 has no form
 * for tools. Functions of the options are given the tool's arguments. Make it once, also where there is a server for each request: it remembers
 * which calls have failed.
 */
export function chargeForTool<P extends unknown[], T extends ToolResult>(
  options: ToolOptions<P[0]>,
  handler: (...parameters: P) => T | Promise<T>,
): (...parameters: P) => Promise<T> {
  const gate = new Gate<P[0]>({ ...options, protocol: 'mpp' })
  return async (...parameters) => {
    // A tool without arguments is given only what is beside them.
    const extra = (parameters.at(-1) ?? {}) as ToolExtra
    const decision = await gate.decide({
      method: 'tools/call',
      route: options.tool,
      authorization: headerOf(extra._meta?.[CREDENTIAL]),
      signal: extra.signal,
      request: parameters[0],
    })
    if (decision.pass) return deliver(() => handler(...parameters), decision)
    const problem = JSON.parse(decision.body) as { detail: string }
    if (decision.status !== 402) return { isError: true, content: [{ type: 'text', text: problem.detail }] } as ToolResult as T
    const challenges = [decision.headers['WWW-Authenticate'] ?? []].flat().map(challengeOf)
    throw await paymentRequired(problem.detail, { httpStatus: 402, challenges, problem })
  }
}

type Delivery = { payment: RedeemedPayment; undelivered: () => void }

async function deliver<T extends ToolResult>(work: () => T | Promise<T>, { payment, undelivered }: Delivery): Promise<T> {
  try {
    const result = await work()
    if (!result.isError) return { ...result, _meta: { ...result._meta, [RECEIPT]: receiptOf(payment.receipt ?? '') } }
    undelivered()
    return result
  } catch (error) {
    undelivered()
    throw error
  }
}

/**
 * McpServer turns what a tool throws into text for the model, and the challenge in it would be lost. It lets its own error class with this
 * very code through, so it has to be that class; a server that was built otherwise has no need of it.
 */
async function paymentRequired(message: string, data: object): Promise<Error> {
  try {
    const { McpError } = await import('@modelcontextprotocol/sdk/types.js')
    return new McpError(PAYMENT_REQUIRED, message, data)
  } catch {
    return Object.assign(new Error(message), { code: PAYMENT_REQUIRED, data })
  }
}
