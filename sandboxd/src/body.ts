import type { IncomingMessage } from 'node:http'

export const MAX_BODY_BYTES = 1024 * 1024

export class BodyTooLarge extends Error {}
/** The client went away, or sent chunks that are none: its own doing, no fault of ours. */
export class BodyBroken extends Error {}

/** Reads no further than the limit: the rest of a hostile body is never held in memory. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    // Leaving the loop must not destroy the socket: the caller is still owed an answer on it.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length
      if (size > MAX_BODY_BYTES) throw new BodyTooLarge()
      chunks.push(chunk as Buffer)
    }
  } catch (error) {
    throw error instanceof BodyTooLarge ? error : new BodyBroken()
  }
  return Buffer.concat(chunks)
}
