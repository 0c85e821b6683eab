import { useSyncExternalStore } from 'react'
import { API } from './client.ts'
import { queryClient } from './queries.ts'
import type { Changed } from './types.ts'

/** `lost` means: it was there, or should be by now, and the page may be showing what is no longer so. */
export type Connection = 'connecting' | 'open' | 'lost'

let connection: Connection = 'connecting'
const watchers = new Set<() => void>()

function become(next: Connection): void {
  if (connection === next) return
  connection = next
  for (const tell of watchers) tell()
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (tell) => {
      watchers.add(tell)
      return () => watchers.delete(tell)
    },
    () => connection,
  )
}

/** A busy gateway changes many times a second; every change asked for at once would be a load test of one's own service. */
const PAUSE_MS = 1000
let pending: Changed | null = null

function apply(changed: Changed): void {
  if (pending) {
    pending = {
      nodes: pending.nodes || changed.nodes,
      payments: pending.payments || changed.payments,
      activity: pending.activity || changed.activity,
    }
    return
  }
  refresh(changed)
  pending = { nodes: false, payments: false, activity: false }
  setTimeout(() => {
    const missed = pending
    pending = null
    if (missed && (missed.nodes || missed.payments || missed.activity)) apply(missed)
  }, PAUSE_MS)
}

function refresh({ nodes, payments, activity }: Changed): void {
  const old = new Set<string>(['overview'])
  // A received payment changes a node's balance and list as much as a start or stop does.
  if (nodes || payments) old.add('nodes').add('credit')
  if (payments) old.add('payments')
  if (activity) old.add('activity').add('credit').add('keys').add('top-up')
  for (const key of old) void queryClient.invalidateQueries({ queryKey: [key] })
}

const LONGEST_WAIT_MS = 15_000

/**
 * The browser's own EventSource gives up for good on an answer that is not 200, such as the 503 of a restart: then it is made anew here.
 * While the tab is hidden there is none, because browsers allow six connections to one host: the seventh tab would hang.
 */
export function listen(onRefused: () => void): () => void {
  let source: EventSource | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let hasMissed = false

  const open = () => {
    clearTimeout(timer)
    source?.close()
    source = new EventSource(`${API}/events`)
    source.onopen = () => {
      failures = 0
      become('open')
      // What happened in between was told to nobody.
      if (hasMissed) void queryClient.invalidateQueries()
      hasMissed = false
    }
    source.addEventListener('changed', (event) => apply(JSON.parse(event.data) as Changed))
    source.onerror = () => {
      hasMissed = true
      failures += 1
      become('lost')
      // Otherwise the browser itself tries again, when the server told it to.
      if (source?.readyState === EventSource.CLOSED) {
        timer = setTimeout(open, Math.min(LONGEST_WAIT_MS, 500 * 2 ** Math.min(failures, 5)))
      }
      // A session that is over looks the same as a server that is away; only a request tells them apart.
      onRefused()
    }
  }
  const close = () => {
    clearTimeout(timer)
    source?.close()
    source = null
    hasMissed = true
  }
  const onVisibility = () => {
    if (document.visibilityState === 'hidden') close()
    else if (source === null) open()
  }
  /** The machine woke up, or found its network again: waiting out the pause would look like a fault. */
  const onOnline = () => {
    if (connection === 'lost' && document.visibilityState === 'visible') open()
  }

  document.addEventListener('visibilitychange', onVisibility)
  window.addEventListener('online', onOnline)
  if (document.visibilityState !== 'hidden') open()
  return () => {
    document.removeEventListener('visibilitychange', onVisibility)
    window.removeEventListener('online', onOnline)
    close()
    become('connecting')
  }
}
