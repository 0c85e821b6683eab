import type { ReactNode } from 'react'
import { canUsePasskeys, passkeyOrigin } from '../../api/auth.ts'

type Props = { origins: string[]; path: string; children: (there: ReactNode) => ReactNode }

/** Browsers allow passkeys only for host names. If the dashboard also has a host name, link to it. */
export function PasskeysElsewhere({ origins, path, children }: Props) {
  const origin = passkeyOrigin(origins)
  if (canUsePasskeys() || origin === undefined) return null
  const there = origin + path
  return children(<a href={there}>{there}</a>)
}
