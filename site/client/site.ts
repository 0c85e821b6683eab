import type { Search } from './search.ts'

const STORED = 'boltyard-theme'
const root = document.documentElement
const SCHEME = 'data-mantine-color-scheme'

function addSchemeButton(button: HTMLButtonElement): void {
  const label = (): void => {
    const isDark = root.getAttribute(SCHEME) === 'dark'
    button.textContent = isDark ? 'Light' : 'Dark'
    button.setAttribute('aria-label', isDark ? 'Use the light theme' : 'Use the dark theme')
  }
  button.addEventListener('click', () => {
    const next = root.getAttribute(SCHEME) === 'dark' ? 'light' : 'dark'
    root.setAttribute(SCHEME, next)
    try {
      localStorage.setItem(STORED, next)
    } catch {
      // Without storage, the choice holds for this page.
    }
    label()
  })
  label()
  button.hidden = false
}

const SHOWN_MS = 2000

function addCopyButton(block: HTMLElement): void {
  const code = block.querySelector('code')
  if (!code || !navigator.clipboard) return
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(code.textContent ?? '')
      button.textContent = 'Copied'
    } catch {
      button.textContent = 'Not copied'
    }
    setTimeout(() => {
      button.textContent = 'Copy'
    }, SHOWN_MS)
  })
  block.append(button)
}

let search: Promise<Search> | undefined

/** The search is loaded when someone first wants it. */
function openSearch(query?: string): void {
  search ??= import('./search.ts').then(({ createSearch }) => createSearch(document.body.dataset.search ?? ''))
  search.then(
    (loaded) => loaded.open(query),
    () => {
      search = undefined
    },
  )
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

document.addEventListener('keydown', (event) => {
  const isShortcut = (event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !isTyping(event.target))
  if (!isShortcut) return
  event.preventDefault()
  openSearch()
})

/** In the table of contents, marks the section that is being read. */
function followReading(links: HTMLAnchorElement[]): void {
  const targets = new Map(links.map((link) => [document.getElementById(decodeURIComponent(link.hash.slice(1))), link]))
  const observer = new IntersectionObserver(
    (entries) => {
      const first = entries.find(({ isIntersecting }) => isIntersecting)
      if (!first) return
      for (const link of links) link.removeAttribute('aria-current')
      targets.get(first.target as HTMLElement)?.setAttribute('aria-current', 'location')
    },
    { rootMargin: '-70px 0px -70% 0px' },
  )
  for (const target of targets.keys()) if (target) observer.observe(target)
}

const schemeButton = document.querySelector<HTMLButtonElement>('.scheme-button')
if (schemeButton) addSchemeButton(schemeButton)
const searchButton = document.querySelector<HTMLButtonElement>('.search-button')
if (searchButton) {
  searchButton.hidden = false
  searchButton.addEventListener('click', () => openSearch())
}
for (const block of document.querySelectorAll<HTMLElement>('.code')) addCopyButton(block)
followReading([...document.querySelectorAll<HTMLAnchorElement>('.toc a')])
// A long menu starts at the current page.
document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'center' })
if (!location.hash) scrollTo(0, 0)
// The dashboard links here. The query is behind the #, so that what people look for is not sent to the service.
const sought = new URLSearchParams(location.hash.slice(1)).get('search')
if (sought !== null) openSearch(sought)
