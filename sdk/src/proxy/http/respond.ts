import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { type Answer, problemAnswer } from '../../paywall/answers.ts'

export const RETRY_AFTER_SECONDS = 5

export function respond(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, headers)
  response.end(body)
}

/** `retryAfterSeconds`: for failures that may go away. */
export function refusal(status: number, detail: string, more: { retryAfterSeconds?: number } = {}): Answer {
  return problemAnswer(status, STATUS_CODES[status] ?? 'Error', detail, more)
}

export const failure = (status: number, detail: string): Answer =>
  refusal(status, detail, { retryAfterSeconds: RETRY_AFTER_SECONDS })

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
