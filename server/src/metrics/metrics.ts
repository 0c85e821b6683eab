import type { Config } from '../config.ts'
import type { Logger } from '../platform/log.ts'
import { nodeCallProbe, requestLogProbe, requestProbe, statusClass, stepProbe } from '../platform/probes.ts'
import type { Database } from '../store/db.ts'
import { createInstruments, createRegistry } from './instruments.ts'
import { serveText } from './listener.ts'
import { StoreSampler } from './store-sampler.ts'

export type MetricsDeps = {
  settings: NonNullable<Config['metrics']>
  sql: Database
  redis: { isUp: boolean } | undefined
  /** How long ago each watch of the Kubernetes API server last received anything, by resource; without watches, empty. */
  watchStaleMs: () => Record<string, number>
  orphanedNodes: () => number | undefined
  log: Logger
}

/** Serves Prometheus metrics of this process and of the store. Returns a function that ends it. */
export async function startMetrics({
  settings,
  sql,
  redis,
  watchStaleMs,
  orphanedNodes,
  log,
}: MetricsDeps): Promise<() => Promise<void>> {
  const registry = createRegistry()
  const {
    requests,
    droppedRequests,
    nodeCalls,
    steps,
    redisUp,
    watchStaleness,
    orphanedNodes: orphans,
    ...sampled
  } = createInstruments(registry)
  const watches = [
    requestProbe.watch(({ method, route, status, seconds }) =>
      requests.observe({ method, route, status: statusClass(status) }, seconds),
    ),
    requestLogProbe.watch(({ dropped }) => droppedRequests.inc(dropped)),
    nodeCallProbe.watch(({ call, result, seconds }) => nodeCalls.observe({ call, result }, seconds)),
    stepProbe.watch(({ result, seconds }) => steps.observe({ result }, seconds)),
  ]
  const sampler = new StoreSampler(sql, sampled)
  const close = await serveText(settings, log, async () => {
    await sampler.sample()
    if (redis) redisUp.set(redis.isUp ? 1 : 0)
    else redisUp.remove()
    for (const [resource, staleMs] of Object.entries(watchStaleMs())) watchStaleness.set({ resource }, staleMs / 1000)
    const count = orphanedNodes()
    if (count === undefined) orphans.remove()
    else orphans.set(count)
    return { text: await registry.metrics(), type: registry.contentType }
  })
  return async () => {
    for (const endWatch of watches) endWatch()
    registry.clear()
    await close()
  }
}
