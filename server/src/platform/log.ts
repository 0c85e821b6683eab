import { type Logger as PinoLogger, pino } from 'pino'

type LogMethod = {
  (fields: object, message: string): void
  (message: string): void
}
/** The only logger methods the service uses. */
export type Logger = { info: LogMethod; warn: LogMethod; error: LogMethod }

/** Credentials must never reach the log, so only the parts of a request or an error that cannot contain one are written. */
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

/** Where log lines go. Never stdout: programs wait there for the line that says that the service is ready. */
export type Output = NodeJS.WritableStream & { isTTY?: boolean; fd?: number }

/** JSON for programs, readable text on a terminal. */
export async function createLogger(level: string, output: Output = process.stderr): Promise<PinoLogger> {
  if (!output.isTTY) return pino({ level, serializers }, output)
  const { default: pretty } = await import('pino-pretty')
  // A terminal is written to by its number, so that the last line before an exit is not lost.
  const destination = output.fd ?? output
  return pino(
    { level, serializers },
    pretty({ destination, sync: true, ignore: 'pid,hostname,reqId', translateTime: 'SYS:HH:MM:ss' }),
  )
}
