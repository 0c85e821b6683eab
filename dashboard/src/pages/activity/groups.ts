/** The groups are in the order of their first rows. */
export function groupsOf<K, R>(rows: R[], keyOf: (row: R) => K): [key: K, rows: R[]][] {
  const groups = new Map<K, R[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group) group.push(row)
    else groups.set(keyOf(row), [row])
  }
  return [...groups]
}
