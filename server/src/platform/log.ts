import { type Logger as PinoLogger, pino } from 'pino'

type LogMethod = {
  (fields: object, message: string): void
  (message: string): void
}
/** All that the service itself asks of a logger. */
export type Logger = { info: LogMethod; warn: LogMethod; error: LogMethod }

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

/** On stderr: stdout has one line only, that the service is ready. JSON for programs; for a person at a terminal, words. */
export async function createLogger(level: string): Promise<PinoLogger> {
  if (!process.stderr.isTTY) return pino({ level, serializers }, process.stderr)
  const { default: pretty } = await import('pino-pretty')
  return pino(
    { level, serializers },
    pretty({ destination: 2, sync: true, ignore: 'pid,hostname,reqId', translateTime: 'SYS:HH:MM:ss' }),
  )
}
