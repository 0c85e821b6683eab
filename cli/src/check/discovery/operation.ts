export type Advertised = {
  source: 'openapi.json' | 'l402.json'
  protocol: 'mpp' | 'l402'
  /** Undefined if the price varies, or is in an unknown unit. */
  amountMsat: number | undefined
}

/** Something to call: advertised by the seller, or given by the user. */
export type Operation = {
  /** Such as `GET /joke`, as the seller writes it. */
  name: string
  method: string
  url: URL
  advertised: Advertised[]
  /** Found in openapi.json, with or without a price. */
  isListed: boolean
  /** openapi.json declares the response 402. */
  is402Declared: boolean
  /** A path parameter had no example, so its value was made up. */
  isGuessed: boolean
}

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** The value of a path parameter without an example. Most sellers ask for payment before they look the item up. */
const GUESS = '1'
/** `{id}` in OpenAPI, `:id` in l402.json. */
const PARAMETER = /\{([^{}/]*)\}|(?<=\/):([^/]+)/g

/** Undefined if the path is invalid or would lead to another server. */
export function urlOf(base: URL, path: string, examples: Map<string, string>): { url: URL; isGuessed: boolean } | undefined {
  let isGuessed = false
  const filled = path.replace(PARAMETER, (_, braced, coloned) => {
    const example = examples.get(braced ?? coloned)
    if (example === undefined) isGuessed = true
    return encodeURIComponent(example ?? GUESS)
  })
  const text = base.origin + base.pathname.replace(/\/+$/, '') + filled
  if (!path.startsWith('/') || !URL.canParse(text)) return undefined
  const url = new URL(text)
  url.hash = ''
  return url.origin === base.origin ? { url, isGuessed } : undefined
}

/** The same call found in two documents is one operation with both prices. */
export function merged(operations: Operation[]): Operation[] {
  const found = new Map<string, Operation>()
  for (const one of operations) {
    const key = `${one.method} ${one.url.href}`
    const known = found.get(key)
    if (known) {
      known.advertised.push(...one.advertised)
      known.isListed ||= one.isListed
      known.is402Declared ||= one.is402Declared
    } else found.set(key, { ...one, advertised: [...one.advertised] })
  }
  return [...found.values()]
}
