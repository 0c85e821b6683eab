import { createHash } from 'node:crypto'

/** The names of the objects that are created when a node's data is copied or restored. Pure. */

/** The longest name of an object. */
const MAX_NAME = 253
/** Enough to recognize the version. The hash tells versions with the same beginning apart. */
const MAX_READABLE = 100
const HASH_DIGITS = 12

/** Letters and digits, with single hyphens and dots between them: what the name of an object may contain, but never `--`. */
const IS_PLAIN = /^[a-z0-9]+([.-][a-z0-9]+)*$/
/** `n-x` and version `r1-1.0.0` would have the same name as the restored claim `n-x-r1` and version `1.0.0`. */
const LOOKS_RESTORED = /^r\d+-/

/** The claim that a restore of this claim creates: n-x, n-x-r1, n-x-r2, … */
export function nextClaimName(claim: string): string {
  const [, base = claim, number = '0'] = /^(.+?)(?:-r(\d+))?$/.exec(claim) ?? []
  return `${base}-r${Number(number) + 1}`
}

/**
 * Never the same for another claim or another version: a roll-back to the data of another version can lose funds. Nearly every version
 * is part of the name as it is, and must stay so, or existing copies would not be found. Any other is changed and followed by `--` and
 * a hash.
 */
export function snapshotName(claim: string, version: string): string {
  const name = `${claim}-${version}`
  if (IS_PLAIN.test(version) && !LOOKS_RESTORED.test(version) && name.length <= MAX_NAME) return name
  const hash = createHash('sha256').update(`${claim} ${version}`).digest('hex').slice(0, HASH_DIGITS)
  return `${[claim, ...readable(version)].join('-')}--${hash}`
}

/** What a name may contain of the version; empty if that is nothing. */
function readable(version: string): string[] {
  const labels = version.toLowerCase().slice(0, MAX_READABLE).split('.')
  const allowed = labels.map((label) => label.match(/[a-z0-9]+/g)?.join('-')).filter((label) => label !== undefined)
  return allowed.length === 0 ? [] : [allowed.join('.')]
}
