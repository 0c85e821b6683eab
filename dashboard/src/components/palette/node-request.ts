import { useSyncExternalStore } from 'react'
import { history } from '../../history.ts'
import type { NodeVerb } from './node-operations.ts'

/** An operation chosen in the palette. It is kept in memory and not in the URL, so that no link can start a node. */
type NodeRequest = { nodeId: string; verb: NodeVerb }

let request: NodeRequest | undefined
const listeners = new Set<() => void>()

function set(changed: NodeRequest | undefined): void {
  request = changed
  for (const listener of listeners) listener()
}

let forget = (): void => undefined

/** Opens the page of the node, which asks the same question as for a click there. */
export function requestOperation(nodeId: string, verb: NodeVerb): void {
  const pathname = `/dashboard/nodes/${nodeId}`
  forget()
  history.push(`${pathname}?tab=settings`)
  set({ nodeId, verb })
  // If the person leaves before the page has loaded, nothing may happen when they come back.
  const stop = history.subscribe(({ location }) => {
    if (location.pathname === pathname) return
    forget()
    set(undefined)
  })
  forget = () => {
    stop()
    forget = () => undefined
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useNodeRequest = (): NodeRequest | undefined => useSyncExternalStore(subscribe, () => request)

/** The operation requested for this node, once. */
export function takeNodeRequest(nodeId: string): NodeVerb | undefined {
  if (request?.nodeId !== nodeId) return undefined
  const { verb } = request
  set(undefined)
  return verb
}
