import { readFileSync } from 'node:fs'

export type Measure = { name: string; value: number; unit: string; target?: { op: '≤' | '≥'; value: number } }

export function median(values: number[]): number {
  return quantile(values, 0.5)
}

export function quantile(values: number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

/** The mean of the middle half: as robust as a median, but of finer resolution where values come in steps. */
export function midmean(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const cut = Math.floor(sorted.length / 4)
  const middle = sorted.slice(cut, sorted.length - cut)
  return middle.reduce((sum, value) => sum + value, 0) / middle.length
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** A closed loop: this many callers, each making its next call as soon as the last one was answered. */
export async function closedLoop(
  calls: number,
  callers: number,
  call: (index: number) => Promise<unknown>,
): Promise<{ perSecond: number; latenciesMs: number[] }> {
  const latenciesMs: number[] = []
  let next = 0
  const tookMs = await timed(() =>
    Promise.all(
      Array.from({ length: callers }, async () => {
        for (let index = next++; index < calls; index = next++) latenciesMs.push(await timed(() => call(index)))
      }),
    ),
  )
  return { perSecond: (calls / tookMs) * 1000, latenciesMs }
}

/** User and system CPU time, in seconds. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}
