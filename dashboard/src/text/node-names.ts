type Named = { id: string; name: string }

const LAST_OF_ID = 5

/** A distinct name for each item: items with the same name also get the end of their id. */
export function distinctNames(list: Named[]): Map<string, string> {
  const counts = new Map<string, number>()
  for (const { name } of list) counts.set(name, (counts.get(name) ?? 0) + 1)
  return new Map(list.map(({ id, name }) => [id, counts.get(name) === 1 ? name : `${name} (…${id.slice(-LAST_OF_ID)})`]))
}

const MOST_NAMED = 3

/** The few nodes that a search may mean. If many match, only those with exactly this name. */
export function nodesNamed<N extends Named>(list: N[], search: string): N[] {
  const wanted = search.trim().toLowerCase()
  if (wanted === '') return []
  const found = list.filter(({ name }) => name.toLowerCase().includes(wanted))
  const few = found.length > MOST_NAMED ? found.filter(({ name }) => name.toLowerCase() === wanted) : found
  return few.length > MOST_NAMED ? [] : few
}
