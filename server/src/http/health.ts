import type { FastifyInstance } from 'fastify'
import { getHealth, getReadiness } from '../../../contract/src/health.ts'
import { storeDown } from '../problems.ts'
import type { RouteDeps } from './deps.ts'
import { addRoute } from './route.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Accepts any Host: a health checker may only know our address. */
    isHealthCheck?: boolean
  }
}

const READY_TIMEOUT_MS = 2_000

/** Throws if the store is down or does not respond in time. */
export async function requireStore(checkStore: () => Promise<void>): Promise<void> {
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(storeDown('timeout', true)), READY_TIMEOUT_MS).unref())
  await Promise.race([checkStore(), late])
}

export function healthRoutes({ checkStore }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const config = { isHealthCheck: true }
    addRoute(app, getHealth, async () => ({ status: 'ok' as const }), { config })
    addRoute(
      app,
      getReadiness,
      async () => {
        await requireStore(checkStore)
        return { status: 'ok' as const }
      },
      { config },
    )
  }
}
