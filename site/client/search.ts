import MiniSearch from 'minisearch'

export type Search = { open: (query?: string) => void }
type Section = { url: string; page: string; title: string; text: string }

const MOST_RESULTS = 12
/** Decisions and the changelog rank lower: they are rarely what someone looks for. */
const BACKGROUND = /^\/docs\/(decisions|changelog)/
const BEFORE = 50
const AFTER = 110

/** A search over all pages, in the browser: the index is one file of the site, and what people look for leaves no trace anywhere. */
export async function createSearch(indexUrl: string): Promise<Search> {
  const response = await fetch(indexUrl)
  if (!response.ok) throw new Error(`The search index could not be loaded: HTTP ${response.status}.`)
  const sections: Section[] = await response.json()
  const index = new MiniSearch<Section & { id: number }>({
    fields: ['title', 'page', 'text'],
    searchOptions: {
      boost: { title: 4, page: 2 },
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      boostDocument: (id) => (BACKGROUND.test(sections[id]?.url ?? '') ? 0.3 : 1),
    },
  })
  index.addAll(sections.map((section, id) => ({ id, ...section })))
  const find = (query: string): { section: Section; terms: string[] }[] => {
    const all = index.search(query, { combineWith: 'AND' })
    return (all.length > 0 ? all : index.search(query)).slice(0, MOST_RESULTS).flatMap(({ id, terms }) => {
      const section = sections[id as number]
      return section ? [{ section, terms }] : []
    })
  }
  return { open: createDialog(find) }
}

function createDialog(find: (query: string) => { section: Section; terms: string[] }[]): Search['open'] {
  const dialog = document.createElement('dialog')
  dialog.className = 'search'
  dialog.setAttribute('aria-label', 'Search the documentation')
  const input = document.createElement('input')
  input.type = 'search'
  input.placeholder = 'Search the documentation'
  input.setAttribute('role', 'combobox')
  input.setAttribute('aria-label', 'Search the documentation')
  input.setAttribute('aria-expanded', 'true')
  input.setAttribute('aria-controls', 'search-results')
  input.setAttribute('aria-autocomplete', 'list')
  const list = document.createElement('ul')
  list.id = 'search-results'
  list.setAttribute('role', 'listbox')
  list.setAttribute('aria-label', 'Results')
  const status = document.createElement('p')
  status.setAttribute('role', 'status')
  status.className = 'search-status'
  dialog.append(input, status, list)
  document.body.append(dialog)

  let selected = 0
  const options = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>('[role=option]')]
  const select = (at: number): void => {
    const all = options()
    selected = all.length === 0 ? 0 : (at + all.length) % all.length
    for (const [position, option] of all.entries()) option.setAttribute('aria-selected', String(position === selected))
    const chosen = all[selected]
    if (chosen) {
      input.setAttribute('aria-activedescendant', chosen.id)
      chosen.scrollIntoView({ block: 'nearest' })
    } else input.removeAttribute('aria-activedescendant')
  }
  const goTo = (option: HTMLElement | undefined): void => {
    if (!option?.dataset.url) return
    dialog.close()
    location.assign(option.dataset.url)
  }
  const show = (): void => {
    const query = input.value.trim()
    const results = query === '' ? [] : find(query)
    list.replaceChildren(...results.map(({ section, terms }, at) => resultItem(section, terms, at)))
    status.textContent =
      query === ''
        ? 'Type to search all pages, the API reference and the contract.'
        : results.length === 0
          ? `Nothing found for “${query}”.`
          : `${results.length} ${results.length === 1 ? 'result' : 'results'}`
    select(0)
  }
  input.addEventListener('input', show)
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') select(selected + 1)
    else if (event.key === 'ArrowUp') select(selected - 1)
    else if (event.key === 'Enter') goTo(options()[selected])
    else return
    event.preventDefault()
  })
  list.addEventListener('click', (event) =>
    goTo((event.target as HTMLElement).closest<HTMLElement>('[role=option]') ?? undefined),
  )
  // A click on the backdrop has the dialog itself as its target.
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close()
  })
  return (query) => {
    if (query) input.value = query
    if (!dialog.open) dialog.showModal()
    input.select()
    show()
  }
}

function resultItem(section: Section, terms: string[], at: number): HTMLElement {
  const item = document.createElement('li')
  item.id = `search-result-${at}`
  item.setAttribute('role', 'option')
  item.dataset.url = section.url
  const title = document.createElement('strong')
  title.textContent = section.title
  const place = document.createElement('span')
  place.className = 'place'
  place.textContent = section.title === section.page ? '' : section.page
  const excerpt = document.createElement('span')
  excerpt.className = 'excerpt'
  excerpt.append(...excerptOf(section.text, terms).map((piece, place) => (place % 2 === 1 ? marked(piece) : piece)))
  // The spaces are for screen readers, which read the three as one name.
  item.append(title, ' ', place, ' ', excerpt)
  return item
}

function marked(text: string): HTMLElement {
  const mark = document.createElement('mark')
  mark.textContent = text
  return mark
}

/** The text around the first match. Every second piece is a match. */
export function excerptOf(text: string, terms: string[]): string[] {
  const words = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  // Whole words, as in the index: "pay" is not what was found in "repay".
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${words || '(?!)'})(?![\\p{L}\\p{N}])`, 'giu')
  const first = Math.max(0, text.search(pattern))
  // Cuts the text only at spaces, so that no word is broken, except in a word that is too long itself.
  const before = text.indexOf(' ', first - BEFORE) + 1
  const start = first <= BEFORE ? 0 : before > 0 && before < first ? before : first
  const after = text.lastIndexOf(' ', first + AFTER)
  const stop = first + AFTER >= text.length ? text.length : after > first ? after : first + AFTER
  const part = `${start > 0 ? '… ' : ''}${text.slice(start, stop)}${stop < text.length ? ' …' : ''}`
  return part.split(pattern)
}
