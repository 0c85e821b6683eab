import type { ReactNode } from 'react'
import { canUsePasskeys, passkeyOrigin } from '../../api/auth.ts'

type Props = { origins: string[]; path: string; children: (there: ReactNode) => ReactNode }

/** Browsers know passkeys for names only; the same dashboard under a name is one click away, if it has one. */
export function PasskeysElsewhere({ origins, path, children }: Props) {
  const origin = passkeyOrigin(origins)
  if (canUsePasskeys() || origin === undefined) return null
  const there = origin + path
  return children(<a href={there}>{there}</a>)
}
