import { hides, type Pattern, takesMethod } from './pattern.ts'
import type { Route } from './route.ts'

/**
 * A free route that takes other spellings of a paid path, or undefined. Many programs serve `/A` and `/a/` as `/a`; the proxy
 * does not know whether the upstream does.
 */
export function freeSpelling(routes: readonly Route[]): { free: number; paid: number } | undefined {
  for (const [free, { pattern, listed }] of routes.entries()) {
    if (listed.access !== 'free') continue
    const paid = routes.slice(0, free).findIndex((one) => one.listed.access === 'paid' && takesSpelling(pattern, one.pattern))
    if (paid >= 0) return { free, paid }
  }
  return undefined
}

function takesSpelling(free: Pattern, paid: Pattern): boolean {
  const sharesMethod = !paid.methods || paid.methods.some((method) => takesMethod(free, method))
  if (!sharesMethod || !hides({ ...free, methods: undefined }, paid)) return false
  const isWild = (index: number): boolean => free.segments[index] === undefined
  const hasOtherCase = paid.segments.some((segment, index) => isWild(index) && /[a-z]/i.test(segment ?? ''))
  const hasOtherEnd = free.hasRest && !paid.hasRest
  return hasOtherCase || hasOtherEnd
}
