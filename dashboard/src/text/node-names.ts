type Named = { id: string; name: string }

const LAST_OF_ID = 5

/** What to call each of these: two of one name are told apart by the ends of their ids. */
export function distinctNames(list: Named[]): Map<string, string> {
  const counts = new Map<string, number>()
  for (const { name } of list) counts.set(name, (counts.get(name) ?? 0) + 1)
  return new Map(list.map(({ id, name }) => [id, counts.get(name) === 1 ? name : `${name} (…${id.slice(-LAST_OF_ID)})`]))
}
