import { statementProbe } from '../../platform/probes.ts'

/** Not an async function, because an extra promise per statement costs time even if nothing is measured. */
export function measured<T>(text: string, run: () => Promise<T>): Promise<T> {
  if (!statementProbe.isWatched) return run()
  const startedAtMs = performance.now()
  const report = (isFailed: boolean): void =>
    statementProbe.report({ text, isFailed, seconds: (performance.now() - startedAtMs) / 1000 })
  return run().then(
    (result) => {
      report(false)
      return result
    },
    (error: unknown) => {
      report(true)
      throw error
    },
  )
}
