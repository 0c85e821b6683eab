import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { StepResult } from '../platform/probes.ts'

const STEP_RESULTS: StepResult[] = ['recorded', 'superseded', 'lease_lost', 'failed']

/** The buckets range from a look-up in memory to a payment that waits for a route. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

export type Instruments = ReturnType<typeof createInstruments>

/**
 * No label may hold an id, a path or anything else that a client chooses: it would leak, and each value becomes a permanent time series.
 */
export function createInstruments(registry: Registry) {
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]): Gauge<L> =>
    new Gauge({ name: `boltyard_${name}`, help, labelNames, registers: [registry] })
  const histogram = <L extends string>(name: string, help: string, ...labelNames: L[]): Histogram<L> =>
    new Histogram({ name: `boltyard_${name}`, help, labelNames, buckets: SECONDS, registers: [registry] })

  const steps = histogram('reconciler_step_duration_seconds', 'Time to observe a node, act and record the result', 'result')
  // Prometheus computes a rate only from a series that exists before its first increase.
  for (const result of STEP_RESULTS) steps.zero({ result })
  return {
    requests: histogram('http_request_duration_seconds', 'Time to respond to a request', 'method', 'route', 'status'),
    droppedRequests: new Counter({
      name: 'boltyard_request_log_dropped_total',
      help: 'Requests that the log of API requests left out',
      registers: [registry],
    }),
    nodeCalls: histogram('node_call_duration_seconds', 'Time of a call to a node’s API', 'call', 'result'),
    steps,
    watchStaleness: gauge(
      'watch_staleness_seconds',
      'How long ago the Kubernetes API server last sent an event or a bookmark',
      'resource',
    ),
    orphanedNodes: gauge('orphaned_nodes', 'Nodes in the cluster that are not in the database'),
    redisUp: gauge('redis_up', 'Whether rate limits are shared through Redis: 1 or 0; missing without REDIS_URL'),
    storeUp: gauge('store_up', 'Whether PostgreSQL responds: 1 or 0'),
    connections: gauge('store_connections', 'Connections to PostgreSQL of this process', 'state'),
    waiting: gauge('store_waiting', 'Statements that wait for a connection'),
    maxConnections: gauge('store_connections_max', 'How many connections this process may open'),
    nodes: gauge('nodes', 'Nodes that are not deleted', 'status', 'phase'),
    reconcileLag: gauge('reconcile_lag_seconds', 'How long the most overdue node has waited for its check'),
    eventLag: gauge('event_lag_seconds', 'How long the oldest event has waited to be added to the feed'),
    deliveries: gauge('webhook_deliveries_waiting', 'Events that have not arrived at an enabled webhook yet'),
    deliveryAge: gauge('webhook_delivery_age_seconds', 'How long the oldest event waiting for a webhook has been waiting'),
    ledger: gauge('ledger_sat', 'Sum of all credit entries', 'kind'),
  }
}

export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}
