import { useCallback, useRef, useState } from 'react'
import { ApiError } from '../api/client.ts'

export type Action<A extends unknown[], R> = {
  run: (...args: A) => Promise<R | undefined>
  isPending: boolean
  error: unknown
  clear: () => void
  /**
   * For `onChange` of a form: removes a refusal, which was about the earlier input. An uncertain outcome stays, because the
   * request may have been carried out.
   */
  onEdit: () => void
}

/**
 * Runs an action the user requested, one at a time: a second click while the first is pending does nothing. Results go to the caller and
 * are never cached, because some are secrets.
 */
export function useAction<A extends unknown[], R>(act: (...args: A) => Promise<R>): Action<A, R> {
  const [isPending, setPending] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const isRunning = useRef(false)
  const latest = useRef(act)
  latest.current = act

  const run = useCallback(async (...args: A) => {
    if (isRunning.current) return undefined
    isRunning.current = true
    setPending(true)
    setError(null)
    try {
      return await latest.current(...args)
    } catch (cause) {
      setError(cause)
      return undefined
    } finally {
      isRunning.current = false
      setPending(false)
    }
  }, [])
  const clear = useCallback(() => setError(null), [])
  const onEdit = useCallback(() => setError((now: unknown) => (now instanceof ApiError && now.isUncertain ? now : null)), [])
  return { run, isPending, error, clear, onEdit }
}
