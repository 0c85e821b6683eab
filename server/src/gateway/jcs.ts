export type JcsValue = string | { [name: string]: JcsValue }

/**
 * RFC 8785 for what we sign: strings, and objects of them. Numbers are left out on purpose: their one right spelling is the hard
 * part of that RFC, and nothing here needs them.
 */
export function jcs(value: JcsValue): string {
  if (typeof value === 'string') {
    // It has no UTF-8 form. Written all the same it becomes an escape here and a replacement character elsewhere: two texts, one id.
    if (!value.isWellFormed()) throw new TypeError('A lone surrogate has no canonical form.')
    return JSON.stringify(value)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError('Only strings and objects of them have a canonical form here.')
  }
  // Not localeCompare: the RFC orders by UTF-16 code units, which is what sort does when it is told nothing.
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${members.map(([name, member]) => `${jcs(name)}:${jcs(member)}`).join(',')}}`
}
