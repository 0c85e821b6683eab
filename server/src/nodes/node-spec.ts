import type { NodeRow } from '../store/nodes/nodes.ts'
import type { NodeSpec } from './runtime.ts'

export function specOf({ id, autoLiquidity, desiredState, desiredVersion, desiredRun, history, nowMs }: NodeRow): NodeSpec {
  return { id, autoLiquidity, desired: { state: desiredState, version: desiredVersion, run: desiredRun }, history, nowMs }
}
