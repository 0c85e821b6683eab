import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { storeDown } from '../problems.ts'
import type { RouteDeps } from './deps.ts'
import { ErrorBody } from './schemas.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answered under any Host: who checks whether we live may know us by address only. */
    isHealthCheck?: boolean
  }
}

const Status = Type.Object({ status: Type.Literal('ok') })
const READY_TIMEOUT_MS = 2_000

export function healthRoutes({ sql }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const config = { isHealthCheck: true }
    app.get('/healthz', { config, schema: { summary: 'The process is alive', response: { 200: Status } } }, async () => ({
      status: 'ok',
    }))
    app.get(
      '/readyz',
      { config, schema: { summary: 'The store answers', response: { 200: Status, 503: ErrorBody } } },
      async () => {
        const late = new Promise<never>((_, reject) => setTimeout(() => reject(storeDown('timeout')), READY_TIMEOUT_MS).unref())
        await Promise.race([sql`SELECT 1`, late])
        return { status: 'ok' }
      },
    )
  }
}
