import { type Logger, pino } from 'pino'

/** Never in a log: whatever authenticates somebody. Only the parts of a request or an error that cannot hold it are written at all. */
const serializers = {
  req: (request: { id: string; method: string; url: string; ip: string }) => ({
    id: request.id,
    method: request.method,
    path: request.url.split('?')[0],
    ip: request.ip,
  }),
  res: (reply: { statusCode: number }) => ({ status: reply.statusCode }),
  err: (error: unknown) => {
    const { name, code, message, stack } = error as { name?: string; code?: string; message?: string; stack?: string }
    return { name, code, message, stack }
  },
}

/** JSON lines on stderr: stdout has one line only, that the service is ready. */
export function createLogger(level: string): Logger {
  return pino({ level, serializers }, process.stderr)
}
