import { type ComponentType, useEffect, useReducer, useState } from 'react'
import { ApiError, api } from '../../api/client.ts'
import { Problem } from '../problem.tsx'
import { Page } from './page.tsx'

type Source = { component: ComponentType | undefined; load: () => Promise<void> }

const sources: Source[] = []

/**
 * A page whose code is loaded on demand. The router's own lazy loading reloads the whole app on failure, which leaves a blank page when
 * the service is briefly unavailable.
 */
export function lazyPage<N extends string>(load: () => Promise<Record<N, ComponentType>>, name: N, isForAll = true) {
  let loading: Promise<void> | undefined
  const source: Source = {
    component: undefined,
    load: () => {
      loading ??= load().then(
        (module) => {
          source.component = module[name]
        },
        (cause: unknown) => {
          loading = undefined
          throw cause
        },
      )
      return loading
    },
  }
  // Pages that most people never open are not loaded in advance.
  if (isForAll) sources.push(source)
  // The router waits for `preload` before it shows the page. The page itself shows any error.
  return Object.assign(() => <LazyPage source={source} />, { preload: () => source.load().catch(() => {}) })
}

function LazyPage({ source }: { source: Source }) {
  const [error, setError] = useState<unknown>(null)
  const [attempt, next] = useReducer((count: number) => count + 1, 0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new attempt must load again
  useEffect(() => {
    if (source.component) return
    setError(null)
    source.load().then(next, async (cause: unknown) => setError(await reasonFor(cause)))
  }, [source, attempt])
  if (source.component) return <source.component />
  if (!error) return null
  return (
    <Page title="Not loaded">
      <Problem error={error} what="This page could not be loaded." onRetry={next} />
    </Page>
  )
}

const RELOADED = 'boltyard-reloaded'

/**
 * After the service is updated, the old app's files are gone. Only then does a reload help, and only once. Called only for a page
 * that someone has opened: when preloading fails, a reload would discard what they are typing on another page.
 */
async function reasonFor(cause: unknown): Promise<unknown> {
  try {
    await api.get('/me', { keepsSession: true })
  } catch {
    return new ApiError({ status: 0, code: 'no_answer', message: 'The service did not respond.' })
  }
  if (Date.now() - Number(sessionStorage.getItem(RELOADED)) < 60_000) return cause
  sessionStorage.setItem(RELOADED, String(Date.now()))
  window.location.reload()
  return new Promise(() => {})
}

const QUIET_MS = 5000

/** Preloads the other pages once the first one is shown, so they open instantly and work while the connection is lost. */
export function preloadPages(): () => void {
  const timer = setTimeout(async () => {
    for (const { load } of sources) await load().catch(() => {})
  }, QUIET_MS)
  return () => clearTimeout(timer)
}
