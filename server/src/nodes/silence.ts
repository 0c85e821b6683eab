import type { Logger } from '../platform/log.ts'

/** Thousands of requests to a silent node may fail. One check per node in this time is enough. */
const PAUSE_MS = 10_000

/** Called when a node did not answer a request. The reconciler then checks the node immediately. */
export type ReportSilence = (nodeId: string) => void

export function silenceReporter(wake: (nodeId: string) => Promise<void>, log: Logger): ReportSilence {
  const recent = new Set<string>()
  return (nodeId) => {
    if (recent.has(nodeId)) return
    recent.add(nodeId)
    setTimeout(() => recent.delete(nodeId), PAUSE_MS).unref()
    wake(nodeId).catch((error: unknown) => log.warn({ err: error, nodeId }, 'cannot request a check of a silent node'))
  }
}
