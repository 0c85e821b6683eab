import { markdownUrl } from './links.ts'
import { escapeHtml } from './markdown.ts'
import type { Page } from './pages.ts'

/** URLs of the files that every page loads. */
export type Assets = { style: string; script: string; font: string; scheme: string; search: string; icon: string }

export function pageHtml(page: Page, pages: Page[], assets: Assets): string {
  const toc = page.headings.filter(({ level }) => level === 2 || level === 3)
  const isHome = page.url === '/docs/'
  return shell({
    title: isHome ? 'Boltyard documentation' : `${page.title} · Boltyard docs`,
    description: page.description,
    assets,
    markdown: markdownUrl(page.url),
    menu: menu(pages, page),
    content: `<article>${page.html}${neighbours(page, pages)}</article>`,
    toc: toc.length < 2 ? '' : contents(toc),
  })
}

export function missingPageHtml(pages: Page[], assets: Assets): string {
  const content =
    '<article><h1>Page not found</h1><p>There is no page at this address. Look in the menu, search, or start at the <a href="/docs/">overview</a>.</p></article>'
  return shell({ title: 'Page not found · Boltyard docs', description: '', assets, menu: menu(pages), content, toc: '' })
}

type Parts = { title: string; description: string; assets: Assets; markdown?: string; menu: string; content: string; toc: string }

function shell({ title, description, assets, markdown, menu, content, toc }: Parts): string {
  return `<!doctype html>
<html lang="en" data-mantine-color-scheme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
${description === '' ? '' : `<meta name="description" content="${escapeHtml(description)}">\n`}<link rel="icon" type="image/svg+xml" href="${assets.icon}">
${markdown === undefined ? '' : `<link rel="alternate" type="text/markdown" href="${markdown}">\n`}<link rel="preload" as="font" type="font/woff2" href="${assets.font}" crossorigin>
<link rel="stylesheet" href="${assets.style}">
<script src="${assets.scheme}"></script>
<script type="module" src="${assets.script}"></script>
</head>
<body data-search="${assets.search}">
<a class="skip" href="#content">Skip to content</a>
<header class="top">
<a class="menu-link" href="#menu">Menu</a>
<a class="brand" href="/docs/"><span class="mark"></span><span>Boltyard <span class="soft">docs</span></span></a>
<button class="search-button" type="button" hidden><span>Search</span> <kbd>/</kbd></button>
<nav class="top-links" aria-label="Elsewhere">${markdown === undefined ? '' : `<a class="as-markdown" href="${markdown}">Markdown</a>`}<a href="/dashboard/">Dashboard</a></nav>
<button class="scheme-button" type="button" hidden></button>
</header>
<div class="frame">
<nav id="menu" class="side" aria-label="Documentation"><a class="menu-close" href="#content">Close menu</a>${menu}</nav>
<main id="content" tabindex="-1">${content}</main>
${toc}
</div>
</body>
</html>
`
}

function menu(pages: Page[], current?: Page): string {
  return [...groupsOf(pages)]
    .map(([group, own], at) => {
      const items = own.map((page) => {
        const isCurrent = page === current || (page.path === 'docs/decisions/README.md' && current?.isInMenu === false)
        return `<li><a href="${page.url}"${isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(menuTitle(page))}</a></li>`
      })
      return `<p id="group-${at}">${escapeHtml(group)}</p><ul aria-labelledby="group-${at}">${items.join('')}</ul>`
    })
    .join('\n')
}

function groupsOf(pages: Page[]): Map<string, Page[]> {
  const groups = new Map<string, Page[]>()
  for (const page of pages) if (page.isInMenu) groups.set(page.group, [...(groups.get(page.group) ?? []), page])
  return groups
}

/** The menu leaves out the line numbers at the end of the contract's titles, and “API” at the end of the reference's titles. */
function menuTitle({ title, group, url }: Page): string {
  if (url === '/docs/' || url === '/docs/api') return 'Overview'
  if (url === '/docs/sdk') return 'TypeScript SDK'
  return group === 'Contract' ? title.replace(/: .*/, '') : title.replace(/ API$/, '')
}

const contents = (headings: Page['headings']): string =>
  `<nav class="toc" aria-label="On this page"><p>On this page</p><ul>${headings
    .map(({ level, id, text }) => `<li${level === 3 ? ' class="deep"' : ''}><a href="#${id}">${escapeHtml(text)}</a></li>`)
    .join('')}</ul></nav>`

function neighbours(page: Page, pages: Page[]): string {
  const at = pages.indexOf(page)
  const link = (other: Page | undefined, label: string, rel: string): string =>
    other === undefined
      ? '<span></span>'
      : `<a rel="${rel}" href="${other.url}"><span>${label}</span>${escapeHtml(other.title)}</a>`
  return `<nav class="neighbours" aria-label="Previous and next page">${link(pages[at - 1], 'Previous', 'prev')}${link(pages[at + 1], 'Next', 'next')}</nav>`
}
