import type { NodeRow } from '../store/nodes/nodes.ts'
import type { NodeSpec } from './runtime.ts'

export function specOf({
  id,
  lightningId,
  autoLiquidity,
  desiredState,
  desiredVersion,
  desiredRun,
  operation,
  history,
  leaseEpoch,
  nowMs,
}: NodeRow): NodeSpec {
  const desired = { state: desiredState, version: desiredVersion, run: desiredRun }
  return { id, lightningId, autoLiquidity, desired, hasOperation: operation !== null, history, epoch: leaseEpoch, nowMs }
}
