import { useSyncExternalStore } from 'react'
import { API } from './client.ts'
import { queryClient } from './queries.ts'
import type { Changed } from './types.ts'

/** `lost`: the connection broke or was never established, so the page may be out of date. */
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

/** A busy gateway changes many times a second. Refetching on every event would overload the service. */
const PAUSE_MS = 1000
let pending: Changed | null = null

/** Refetches what has changed: at once, and then at most once per `PAUSE_MS`. */
export function apply(changed: Changed): void {
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
  // Events of every kind are sent to webhooks, whose deliveries then change.
  const old = new Set<string>(['overview', 'webhooks'])
  // A received payment also changes the node's balance and payment list. It costs no credit.
  if (nodes || payments) old.add('nodes')
  if (nodes) old.add('credit')
  if (payments) old.add('payments').add('received')
  if (payments && !activity) refreshLoggedPayments()
  if (activity) old.add('activity').add('credit').add('keys').add('top-up')
  for (const key of old) void queryClient.invalidateQueries({ queryKey: [key] })
}

/** Reading the log is slow if there are many payments in it. */
const LOG_PAUSE_MS = 15_000
let isLogOld = false

function refreshLoggedPayments(): void {
  if (isLogOld) return
  isLogOld = true
  setTimeout(() => {
    isLogOld = false
    void queryClient.invalidateQueries({ queryKey: ['activity', 'pages'] })
  }, LOG_PAUSE_MS)
}

const LONGEST_WAIT_MS = 15_000

/**
 * EventSource gives up permanently on any status but 200, such as a 503 during a restart, so we create a new one. Hidden tabs
 * close their connection, because browsers allow only six per host and the seventh tab would hang.
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
      // Events during the gap were missed.
      if (hasMissed) void queryClient.invalidateQueries()
      hasMissed = false
    }
    source.addEventListener('changed', (event) => apply(JSON.parse(event.data) as Changed))
    source.onerror = () => {
      hasMissed = true
      failures += 1
      become('lost')
      // A source that is not closed retries on its own, after the delay set by the server.
      if (source?.readyState === EventSource.CLOSED) {
        timer = setTimeout(open, Math.min(LONGEST_WAIT_MS, 500 * 2 ** Math.min(failures, 5)))
      }
      // An expired session looks like an unreachable server; only a request can tell them apart.
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
  /** The computer woke up or is online again, so reconnect now instead of waiting for the delay. */
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
