/** A request target in the only form in which it is matched and forwarded. */
export type RequestTarget = {
  /** Without the first slash. `/a/` has the segments `a` and an empty one. */
  segments: readonly string[]
  path: string
  /** Path and query. */
  url: string
}

const PRINTABLE = /^\/[\x21-\x7e]*$/
/** Most paths are in canonical form already. A segment that begins with a dot is looked at more closely. */
const PLAIN = /^(?:\/[A-Za-z0-9_~!$&'()*,=:@-][A-Za-z0-9._~!$&'()*,=:@-]*)+$/
/** Some servers cut a segment at `;`, and some treat a backslash as a slash. */
const AMBIGUOUS = /[;\\]/
/** What a decoded segment must not contain: slashes, control characters, and text that would change if it was decoded twice. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be in a path
const DANGEROUS = /[/\\\u0000-\u001f\u007f]|%[0-9A-Fa-f]{2}/
/** What `encodeURIComponent` encodes, although a path may have it. Not `+`, which some servers read as a space. */
const ALLOWED = /%(?:24|26|2C|3A|3D|40)/g

/** Undefined if servers could disagree about what is requested. */
export function targetOf(requested: string): RequestTarget | undefined {
  if (!PRINTABLE.test(requested) || requested.includes('#')) return undefined
  const at = requested.indexOf('?')
  const raw = at < 0 ? requested : requested.slice(0, at)
  const segments = raw.slice(1).split('/')
  if (PLAIN.test(raw)) return { segments, path: raw, url: requested }
  const canonical: string[] = []
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1
    const text = segment === '' && isLast ? '' : canonicalSegment(segment)
    if (text === undefined) return undefined
    canonical.push(text)
  }
  const path = `/${canonical.join('/')}`
  return { segments: canonical, path, url: at < 0 ? path : path + requested.slice(at) }
}

/** The one spelling of a segment, or undefined if it is not allowed. */
export function canonicalSegment(segment: string): string | undefined {
  if (segment === '' || AMBIGUOUS.test(segment)) return undefined
  let text: string
  try {
    text = decodeURIComponent(segment)
  } catch {
    return undefined
  }
  if (text === '.' || text === '..' || DANGEROUS.test(text)) return undefined
  return encodeURIComponent(text).replace(ALLOWED, decodeURIComponent)
}
