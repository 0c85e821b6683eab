/**
 * Canonical JSON (RFC 8785): one text per value. Numbers are formatted by JSON.stringify, as the RFC requires. Throws a TypeError for
 * values that JSON cannot express.
 */
export function jcs(value: unknown): string {
  if (typeof value === 'string') {
    // A lone surrogate has no UTF-8 form. Some encoders write an escape and others a replacement character, so the text would differ.
    if (!value.isWellFormed()) throw new TypeError('A lone surrogate has no canonical form.')
    return JSON.stringify(value)
  }
  if (value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) {
    return JSON.stringify(value)
  }
  if (typeof value !== 'object') throw new TypeError(`A value of type ${typeof value} has no canonical form.`)
  if (Array.isArray(value)) return `[${Array.from(value, jcs).join(',')}]`
  // Not localeCompare: the RFC sorts by UTF-16 code units, like <.
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${members.map(([name, member]) => `${jcs(name)}:${jcs(member)}`).join(',')}}`
}
