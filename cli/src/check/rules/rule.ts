/** `error`: a buyer loses money or cannot buy, or the seller is not paid. `warning`: some clients fail, or a specification is broken. */
export type Severity = 'error' | 'warning'

/** What every seller must do, and how to fix a violation. The id is part of the JSON output and never changes. */
export type Rule = { severity: Severity; expected: string; fix: string }
