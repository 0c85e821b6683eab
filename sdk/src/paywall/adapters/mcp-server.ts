/** What an MCP server needs besides its tools. */

type Handler = (request: { params?: { arguments?: unknown } }, extra: object) => unknown
type LowLevel = {
  setRequestHandler(schema: unknown, handler: Handler): unknown
  registerCapabilities(capabilities: object): unknown
}

/** The JSON-RPC codes of errors that were thrown with another code. */
const codes = new WeakMap<object, number>()
/** The arguments of each call before the tool's schema has changed them. The key is the handler's `extra`. */
const sent = new WeakMap<object, unknown>()

/** Only with `acceptPayments` does the error get its code: McpServer turns every other error of a tool into text for the model. */
export const withCode = <E extends object>(error: E, code: number): E => {
  codes.set(error, code)
  return error
}

export const sentArguments = (extra: object, parsed: unknown): unknown => (sent.has(extra) ? sent.get(extra) : parsed)

/**
 * Announces payments (`experimental.payment`), and lets payment errors through with their own codes: -32042 payment required, -32043
 * verification failed, -32602 malformed. Call it before you register tools. Takes an McpServer or a Server.
 */
export function acceptPayments<S extends object>(server: S): S {
  const lowLevel = ('server' in server ? server.server : server) as LowLevel
  const { setRequestHandler } = lowLevel
  lowLevel.registerCapabilities({ experimental: { payment: { methods: ['lightning'], intents: ['charge'] } } })
  lowLevel.setRequestHandler = (schema, handler) =>
    setRequestHandler.call(lowLevel, schema, async (request, extra) => {
      sent.set(extra, request.params?.arguments)
      try {
        return await handler(request, extra)
      } catch (error) {
        const code = codes.get(error as object)
        if (code === undefined) throw error
        const { message, data } = error as { message: string; data?: unknown }
        throw Object.assign(new Error(message), { code, data })
      }
    })
  return server
}
