import type { NodeRow } from '../store/nodes/nodes.ts'
import type { NodeSpec } from './runtime.ts'

export function specOf({
  id,
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
  return { id, autoLiquidity, desired, hasOperation: operation !== null, history, epoch: leaseEpoch, nowMs }
}
