import { canUsePasskeys, passkeyOrigin } from '../auth.ts'

/** Browsers know passkeys for names only; the same dashboard under a name is one click away. */
export function PasskeysElsewhere({ origins, path }: { origins: string[]; path: string }) {
  const origin = passkeyOrigin(origins)
  if (canUsePasskeys() || origin === undefined) return null
  const there = origin + path
  return (
    <p className="small dim">
      Passkeys work at <a href={there}>{there}</a>. You sign in there once more: a session belongs to one address.
    </p>
  )
}
