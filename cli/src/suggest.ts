/** Edit distance that counts swapped neighbors as one edit (Damerau–Levenshtein). */
export function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(
        Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (same ? 0 : 1), swapped ? at(i - 2, j - 2) + 1 : 99),
      )
    }
  }
  return at(a.length, b.length)
}

/**
 * The closest candidate, within one edit per three of its letters; one edit is always allowed. A prefix of at least two letters is closer
 * than any edit.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  let best: { candidate: string; off: number } | undefined
  for (const candidate of known) {
    const begins = word.length >= 2 && candidate.startsWith(word)
    const off = begins ? 0.5 : distance(word.slice(0, 40), candidate)
    if (off <= Math.max(1, Math.floor(candidate.length / 3)) && off < (best?.off ?? Number.POSITIVE_INFINITY)) {
      best = { candidate, off }
    }
  }
  return best?.candidate
}
