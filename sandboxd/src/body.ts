import type { IncomingMessage } from 'node:http'

export const MAX_BODY_BYTES = 1024 * 1024

export class BodyTooLarge extends Error {}
/** The client disconnected or sent invalid chunks. Not an error of the daemon. */
export class BodyBroken extends Error {}

/** Stops reading at the limit, so that a hostile body never fills the memory. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    // Leaving the loop must not destroy the socket, because the response still has to be sent.
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
