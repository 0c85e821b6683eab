import type { PaywallOptions } from '../options.ts'
import { type LazyGate, lazyGate, type Ready } from './lazy-gate.ts'
import { argumentsText } from './mcp-messages.ts'
import {
  deliver,
  type HttpOnly,
  howToPay,
  type McpExtra,
  paymentErrorOf,
  paymentFieldsOf,
  problemIn,
  type Refused,
} from './mcp-payment.ts'

/** In MCP, x402 is only defined for tools, and L402 not at all, so resources and prompts support only MPP. */
type ReadOptions<A> = Omit<PaywallOptions<A>, 'protocol' | 'protocols' | HttpOnly>
type ReadResult = {
  contents?: unknown[] | undefined
  messages?: unknown[] | undefined
  _meta?: Record<string, unknown> | undefined
}
type Reading = { noun: string; method: string; name: string; url: string; howToPay: string }

const INTERNAL_ERROR = -32603

/**
 * Charges for a resource or a template of resources:
 * `server.registerResource('story', 'stories://1', { … }, chargeForResource({ nodeId, amountSat: 10 }, async (uri) => …))`.
 * A payment is for one URI. Functions in the options get this URI.
 */
export function chargeForResource<P extends [uri: URL, ...others: unknown[]], T extends ReadResult>(
  options: ReadOptions<URL>,
  handler: (...parameters: P) => T | Promise<T>,
): ((...parameters: P) => Promise<T>) & Ready {
  const gate = lazyGate<URL>({ ...options, protocols: ['mpp'] })
  const read = async (...parameters: P): Promise<T> => {
    const [{ href: name }] = parameters
    const reading = { noun: 'resource', method: 'resources/read', name, url: name, howToPay: howToPay('read the resource') }
    return charged(gate, reading, parameters, handler)
  }
  return Object.assign(read, { ready: gate.ready })
}

export type PromptOptions<A> = ReadOptions<A> & {
  /** The prompt's name. Payments are bound to it, and to the arguments if the price is a function. */
  prompt: string
}

/**
 * Charges for a prompt:
 * `server.registerPrompt('review', { … }, chargeForPrompt({ prompt: 'review', nodeId, amountSat: 10 }, async (args) => …))`.
 * Functions in the options get the prompt's arguments.
 */
export function chargeForPrompt<P extends unknown[], T extends ReadResult>(
  options: PromptOptions<P[0]>,
  handler: (...parameters: P) => T | Promise<T>,
): ((...parameters: P) => Promise<T>) & Ready {
  const { prompt: name } = options
  const gate = lazyGate<P[0]>({ ...options, protocols: ['mpp'] })
  const get = async (...parameters: P): Promise<T> => {
    const url = parameters.length > 1 ? `${name} ${argumentsText(parameters[0])}` : name
    const reading = { noun: 'prompt', method: 'prompts/get', name, url, howToPay: howToPay('get the prompt') }
    return charged(gate, reading, parameters, handler)
  }
  return Object.assign(get, { ready: gate.ready })
}

async function charged<P extends unknown[], T extends ReadResult>(
  gate: LazyGate<P[0]>,
  { noun, method, name, url, howToPay: advice }: Reading,
  parameters: P,
  handler: (...parameters: P) => T | Promise<T>,
): Promise<T> {
  const extra = (parameters.at(-1) ?? {}) as McpExtra
  const { authorization } = paymentFieldsOf(extra)
  const { signal } = extra
  const visit = { method, route: name, url, authorization, signal, howToPay: advice, request: parameters[0] }
  const decision = await gate.decide(visit)
  if (decision.pass) return deliver(noun, () => handler(...parameters), decision.delivery, signal)
  throw errorOf(decision)
}

/**
 * Servers pass on what a resource or prompt throws, with its code. A 503 or 429 gets JSON-RPC's code for internal errors, because
 * it does not mean that a payment is required or has failed.
 */
function errorOf(refused: Refused): Error {
  const { code, data } = paymentErrorOf(refused)
  const isUnavailable = refused.status === 503 || refused.status === 429
  return Object.assign(new Error(problemIn(refused).detail), { code: isUnavailable ? INTERNAL_ERROR : code, data })
}
