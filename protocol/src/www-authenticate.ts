/** Parses WWW-Authenticate strictly by RFC 9110, section 11.6.1. Several header lines are joined by commas. */

export type Challenge = { scheme: string; token68: string | undefined; params: Map<string, string> }

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))/y
const QUOTED = /"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\uffff]|\\[\t \x21-\x7e\x80-\uffff])*)"/y
const BLANKS = /[ \t]*/y
const COMMAS = /[ \t]*(?:,[ \t]*)*/y

/** Undefined if the header is not a valid list. A partial result is not used, because text after an error is ambiguous. */
export function readChallenges(header: string): Challenge[] | undefined {
  const text = new Reader(header)
  const challenges: Challenge[] = []
  text.take(COMMAS)
  while (!text.isAtEnd) {
    const scheme = text.take(TOKEN)
    if (scheme === undefined) return undefined
    const challenge: Challenge = { scheme, token68: undefined, params: new Map() }
    if (text.next === ' ') {
      text.take(BLANKS)
      challenge.token68 = text.take(TOKEN68)
      if (challenge.token68 === undefined && !readParams(text, challenge.params)) return undefined
    }
    challenges.push(challenge)
    if (!text.take(COMMAS)?.includes(',') && !text.isAtEnd) return undefined
  }
  return challenges
}

/** Leaves the reader before the comma that precedes the next scheme. */
function readParams(text: Reader, params: Map<string, string>): boolean {
  for (;;) {
    const back = text.at
    if (params.size > 0 && !text.take(COMMAS)?.includes(',')) return true
    const name = text.take(TOKEN)?.toLowerCase()
    text.take(BLANKS)
    if (name === undefined || text.next !== '=') {
      text.at = back
      return params.size > 0 || text.isAtEnd || text.next === ','
    }
    text.at++
    text.take(BLANKS)
    const value = text.take(QUOTED)?.replace(/\\(.)/gs, '$1') ?? text.take(TOKEN)
    // Parsers disagree about which of two equal names counts.
    if (value === undefined || params.has(name)) return false
    params.set(name, value)
  }
}

class Reader {
  at = 0
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.at >= this.#text.length
  }

  get next(): string | undefined {
    return this.#text[this.at]
  }

  /** Consumes and returns the match, or its first group. */
  take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at
    const match = pattern.exec(this.#text)
    if (!match) return undefined
    this.at = pattern.lastIndex
    return match[1] ?? match[0]
  }
}
