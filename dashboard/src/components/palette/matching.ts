/** Without accents and case: people type `cafe` for `Café`. */
const plain = (text: string): string => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()

const wordsOf = (text: string): string[] => plain(text).split(/\s+/).filter(Boolean)

/** Other names include ids and addresses, whose letters are random, so a word must match the beginning of one of their parts. */
const begins = (text: string, word: string): boolean =>
  text.startsWith(word) || text.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word))

/** People type whole phrases, such as "paid but got nothing". These words say nothing about what they look for. */
const SMALL_WORDS = new Set(
  'a an and are at but by did do for from have how i in is it me my of on or that the they this to was what when where who with'.split(
    ' ',
  ),
)

/** How well a label and its other names match; the lowest number is the best. Undefined: a word of the query is missing. */
export function rankOf(query: string, label: string, others: string[] = []): number | undefined {
  const typed = wordsOf(query)
  const telling = typed.filter((word) => !SMALL_WORDS.has(word))
  const words = telling.length > 0 ? telling : typed
  const [name, ...rest] = [label, ...others].map(plain)
  if (name === undefined) return undefined
  if (!words.every((word) => name.includes(word) || rest.some((text) => begins(text, word)))) return undefined
  const whole = typed.join(' ')
  if (name === whole) return 0
  if (name.startsWith(whole)) return 1
  if (name.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(words[0] ?? ''))) return 2
  return words.every((word) => name.includes(word)) ? 3 : 4
}

const PAYMENT = /^(pay_[0-9a-z]{1,20}|[0-9a-f]{64}|(lightning:)?ln(bc|tb)[0-9a-z]{50,})$/i
const OTHER_ID = /^[a-z]{2,5}_[0-9a-z]{20}$/i
const API_KEY = /byk_[0-9A-Za-z]{8}/
const FEWEST_LETTERS = 3
/** More than anyone types of a description, and less than the recovery words of a node have. */
const MOST_LETTERS = 60

export const hasApiKey = (query: string): boolean => API_KEY.test(query)

/** The text to search payments for. Undefined if no payment can match, and for secrets, which must not get into a URL. */
export function paymentSearchIn(query: string): string | undefined {
  const text = query.trim()
  if (PAYMENT.test(text)) return text
  if (hasApiKey(text) || OTHER_ID.test(text) || text.length < FEWEST_LETTERS || text.length > MOST_LETTERS) return undefined
  return text
}

export const isTooLong = (query: string): boolean => query.trim().length > MOST_LETTERS && paymentSearchIn(query) === undefined

type Progress = {
  count: number
  /** Whether a search of the documentation is offered. It is not included in `count`. */
  offersDocs: boolean
  isSearching: boolean
  /** Lists that could not be loaded. */
  failed: string[]
}

/** Says what the list does not show: that it is not complete, or why it is empty. */
export function noteFor(query: string, { count, offersDocs, isSearching, failed }: Progress): string {
  const text = query.trim()
  if (text === '') return ''
  if (failed.length > 0) return `Not searched, because the service did not respond: ${failed.join(', ')}.`
  if (isSearching) return 'Searching…'
  if (count > 0) return isTooLong(text) ? 'Payments were not searched: the text is too long.' : ''
  if (hasApiKey(text)) return 'No API key of this account starts like this. What you pasted was not sent.'
  if (isTooLong(text)) return 'Nothing found. Payments were not searched: the text is too long.'
  return `Nothing ${offersDocs ? 'else ' : ''}found for “${text}”.`
}
