/** The header Accept-Payment of the Payment scheme: what a client can pay with, such as `lightning/charge, tempo/*;q=0.3`. */

type Range = { method: string; intent: string; quality: number }

const RANGE = /^([a-z][a-z0-9-]*|\*)\/([a-z][a-z0-9-]*|\*)(?:[ \t]*;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i
/** Bounds the work for a header that a stranger sent. */
const MAX_LENGTH = 4_096

/**
 * Whether the client can pay with this method and intent. Undefined if the header is absent or malformed.
 */
export function acceptsPayment(header: string | null | undefined, method: string, intent: string): boolean | undefined {
  const ranges = readRanges(header ?? '')
  if (ranges === undefined) return undefined
  const [best] = ranges
    .filter((range) => [method, '*'].includes(range.method) && [intent, '*'].includes(range.intent))
    .sort((one, other) => specificity(other) - specificity(one))
  return best !== undefined && best.quality > 0
}

function readRanges(header: string): Range[] | undefined {
  if (header.length > MAX_LENGTH) return undefined
  const elements = header
    .split(',')
    .map((element) => element.trim())
    .filter((element) => element !== '')
  const ranges = elements.map((element) => RANGE.exec(element)).filter((match) => match !== null)
  if (ranges.length === 0 || ranges.length < elements.length) return undefined
  return ranges.map(([, method = '', intent = '', quality = '1']) => ({
    method: method.toLowerCase(),
    intent: intent.toLowerCase(),
    quality: Number(quality),
  }))
}

/** The method counts for more than the intent. */
const specificity = ({ method, intent }: Range): number => (method === '*' ? 0 : 2) + (intent === '*' ? 0 : 1)
