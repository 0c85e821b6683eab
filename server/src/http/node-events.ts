import type { FastifyInstance } from 'fastify'
import { isId } from '../platform/ids.ts'
import { unauthorized } from '../problems.ts'
import type { RouteDeps } from './deps.ts'

/** Where nodes report received payments. Anyone can reach it, so only events signed by the node are processed. */
export function settledRoutes({ receiveNodeEvent, limits }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    // The signature covers the raw bytes.
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    app.post<{ Params: { nodeId: string }; Body: Buffer | undefined }>('/:nodeId', async (request, reply) => {
      const signature = request.headers['x-phoenix-signature']
      const { params, body } = request
      const isSigned =
        isId('node', params.nodeId) &&
        typeof signature === 'string' &&
        Buffer.isBuffer(body) &&
        (await receiveNodeEvent(params.nodeId, body, signature))
      if (!isSigned) {
        await limits.failures(request)
        throw unauthorized()
      }
      return reply.code(204).send()
    })
  }
}
