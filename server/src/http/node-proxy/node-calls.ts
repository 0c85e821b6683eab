/** Counts a hit for this key across all processes. The window begins with its first hit. */
export type CountHit = (key: string, windowMs: number) => Promise<{ hits: number; remainingMs: number }>

export const MAX_NODE_CALLS = 600
const WINDOW_MS = 60_000

/**
 * How many calls a node has accepted in the current window of a minute. A call counts once the node has accepted it: those it
 * answers with 401 come from strangers and must not use up the owner's limit. Without `countHit`, each process counts only its
 * own calls.
 */
export class NodeCalls {
  readonly max: number
  readonly #countHit: CountHit | undefined
  readonly #windows = new Map<string, { calls: number; endsAtMs: number }>()

  constructor(countHit: CountHit | undefined, max = MAX_NODE_CALLS) {
    this.#countHit = countHit
    this.max = max
  }

  /** Undefined if calls are left; otherwise the time until the next one is allowed. */
  secondsUntilFree(nodeId: string): number | undefined {
    const window = this.#windowOf(nodeId)
    return window.calls < this.max ? undefined : Math.ceil((window.endsAtMs - Date.now()) / 1000)
  }

  count(nodeId: string): void {
    const window = this.#windowOf(nodeId)
    window.calls++
    this.#windows.set(nodeId, window)
    this.#countHit?.(`node calls ${nodeId}`, WINDOW_MS).then(
      ({ hits, remainingMs }) => {
        window.calls = Math.max(window.calls, hits)
        window.endsAtMs = Date.now() + remainingMs
      },
      // While the store is down, each process counts on its own: a limit must not cause an outage.
      () => undefined,
    )
  }

  #windowOf(nodeId: string): { calls: number; endsAtMs: number } {
    const window = this.#windows.get(nodeId)
    if (window && window.endsAtMs > Date.now()) return window
    this.#windows.delete(nodeId)
    return { calls: 0, endsAtMs: Date.now() + WINDOW_MS }
  }
}
