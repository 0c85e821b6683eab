type Searched = { id: string; name: string; prefix: string }

const FEWEST_OF_ID = 'key_'.length + 4

/**
 * Whether the search matches what the page shows of a key. The page does not show the id, so only a longer part of it matches:
 * otherwise, a search for "key" would find every key.
 */
export function isMeant({ id, name, prefix }: Searched, search: string): boolean {
  const wanted = search.trim().toLowerCase()
  const first = prefix.toLowerCase()
  const isFirst = [first, first.replace(/^byk_/, '')].some((shown) => shown.startsWith(wanted))
  return isFirst || name.toLowerCase().includes(wanted) || (wanted.length >= FEWEST_OF_ID && id.startsWith(wanted))
}
