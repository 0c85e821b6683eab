import { sanitize } from '../terminal.ts'
import { OFFER_RULES } from './rules/offer-rules.ts'
import type { Rule, Severity } from './rules/rule.ts'
import { SELLER_RULES } from './rules/seller-rules.ts'

const RULES = { ...SELLER_RULES, ...OFFER_RULES }
export type RuleId = keyof typeof RULES

/** Scripts rely on this shape. */
export type Finding = { id: RuleId; severity: Severity; operation: string; seen: string; expected: string; fix: string }
export type Skipped = { operation: string; reason: string }

/** Reports that a rule is broken: what was seen, and what was expected if that is more specific than the rule. */
export type Note = (id: RuleId, seen: string, expected?: string) => void

const MAX_TEXT = 200
/** Limits the findings and the skipped operations. A hostile document could cause a hundred thousand. */
const MAX_LISTED = 500

/** Text from the server, shortened and without control characters, which a terminal would execute. */
export function quoted(text: string): string {
  const clean = sanitize(text)
  return clean.length <= MAX_TEXT ? clean : `${clean.slice(0, MAX_TEXT)}…`
}

/**
 * A value of the server's JSON as text, without quotes. Empty for objects: String() would fail if they have a member named toString, and
 * overflow the stack if they are nested deeply.
 */
export const textIn = (value: unknown): string => (typeof value === 'object' ? '' : String(value))

/** A value of the server's JSON as a finding shows it, with quotes. */
export function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  return typeof value === 'object' ? 'not a string' : JSON.stringify(value)
}

export class Findings {
  readonly list: Finding[] = []
  readonly #known = new Set<string>()
  readonly skipped: Skipped[] = []
  /** Set if a rate limit or the time limit ended the check early. A check without findings then proves nothing. */
  cutShortBy: 'limit' | 'time' | undefined

  of(operation: string): Note {
    return (id, seen, expected) => {
      const rule: Rule = RULES[id]
      const finding = { id, severity: rule.severity, operation: quoted(operation), seen: quoted(seen) }
      const key = JSON.stringify([id, finding.operation, finding.seen])
      // The same fault shows in several visits.
      if (this.#known.has(key) || this.list.length === MAX_LISTED) return
      this.#known.add(key)
      this.list.push({ ...finding, expected: quoted(expected ?? rule.expected), fix: rule.fix })
    }
  }

  cutShort(by: 'limit' | 'time', operation: string): void {
    this.cutShortBy ??= by
    const why = by === 'limit' ? 'The server returned HTTP 429. Try again later.' : 'The check took longer than 5 minutes.'
    this.skip(operation, `Not everything was checked. ${why}`)
  }

  skip(operation: string, reason: string): void {
    if (this.skipped.length < MAX_LISTED) this.skipped.push({ operation: quoted(operation), reason: quoted(reason) })
  }
}
