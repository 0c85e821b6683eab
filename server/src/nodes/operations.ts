import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { crashpoint } from '../platform/crashpoint.ts'
import { Problem } from '../problems.ts'
import { logActivity } from '../store/activity.ts'
import type { Database, Sql } from '../store/db.ts'
import { findAnyNode, type NodeRow } from '../store/nodes/nodes.ts'
import { type Ask, beginOperation } from '../store/nodes/operations.ts'
import type { OperationKind, Status } from './node.ts'
import { type Call, ownNode } from './own-node.ts'

/** On top of an operation's own deadline, because the reconciler may be a step behind. */
const EXTRA_WAIT_MS = 10_000
const FIRST_POLL_MS = 20
const LONGEST_POLL_MS = 250

export type OperationParams = Omit<Ask, 'operationId'>
/** Runs in the transaction that begins the operation. If it throws, everything is rolled back. */
export type Check = (sql: Sql) => Promise<void>

export type OperationsDeps = { sql: Database; wake: () => void; isStopping: () => boolean }

/** At most one operation per node at a time. Operations begin here; the reconciler carries them out. */
export class Operations {
  readonly #deps: OperationsDeps

  constructor(deps: OperationsDeps) {
    this.#deps = deps
  }

  async begin(call: Call, id: string, params: OperationParams, check: Check = async () => undefined): Promise<NodeRow> {
    const { sql, wake } = this.#deps
    requireState(await ownNode(sql, call, id), params.kind, params.from)
    const row = await sql.begin(async (transaction) => {
      const begun = await beginOperation(transaction, call.accountId, id, { ...params, operationId: randomUUID() })
      if (!begun) return undefined
      await check(transaction)
      await logActivity(transaction, call.accountId, call.actor, `node.${params.kind}`, id)
      return begun
    })
    if (!row) {
      // `beginOperation` has already refused; this only determines the reason.
      const node = await ownNode(sql, call, id)
      requireState(node, params.kind, params.from)
      if (params.unlessFunded && node.hasFunds)
        throw new Problem('node_has_funds', 'The node holds funds. Send them elsewhere first, or retry with ?force=true.')
      // The operation that was running has ended since, so its kind is unknown.
      throw inProgress()
    }
    crashpoint('operation: begun')
    wake()
    return row
  }

  /** Begins the operation and waits for its end. If the caller stops waiting, the operation continues. */
  async complete(call: Call, id: string, params: OperationParams, check?: Check): Promise<NodeRow> {
    const { sql, isStopping } = this.#deps
    const { operationId } = await this.begin(call, id, params, check)
    const deadline = performance.now() + params.timeoutMs + EXTRA_WAIT_MS
    for (let pauseMs = FIRST_POLL_MS; performance.now() < deadline; pauseMs = Math.min(pauseMs * 1.5, LONGEST_POLL_MS)) {
      await pause(pauseMs)
      if (isStopping()) {
        throw new Problem('service_unavailable', 'The service is shutting down. The operation continues.', {
          headers: { 'retry-after': '5' },
        })
      }
      const row = await findAnyNode(sql, id)
      if (row && row.operationId === operationId && row.operation) continue
      if (!row || row.operationId !== operationId || row.operationResult === 'done') return ownNode(sql, call, id)
      throw new Problem('payment_service_unavailable', row.failureMessage ?? tooLate(params.kind))
    }
    throw new Problem('payment_service_unavailable', tooLate(params.kind))
  }
}

const tooLate = (kind: OperationKind): string =>
  kind === 'stop' ? 'The node has not stopped yet. The service keeps trying.' : 'The node did not start in time.'

export function requireState(node: NodeRow, kind: OperationKind, from: readonly Status[]): void {
  if (!from.includes(node.status))
    throw new Problem('invalid_node_state', `The node is ${node.status}. To ${kind} it, it must be ${from.join(' or ')}.`)
  if (node.operation) throw inProgress(node.operation)
}

export function inProgress(kind?: OperationKind): Problem {
  const message = kind
    ? `Another operation (${kind}) is running on this node. Try again when it has finished.`
    : 'The node has just changed, and nothing was done. Try again.'
  return new Problem('operation_in_progress', message, { headers: { 'retry-after': '1' } })
}
