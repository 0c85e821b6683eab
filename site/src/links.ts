import { posix } from 'node:path'

const REPOSITORY = 'https://github.com/boltyard/boltyard'

/** The URL of each page of the site, by the page's path in the repository. */
export type Places = ReadonlyMap<string, string>

/** The Markdown text of a page is next to it. */
export const markdownUrl = (url: string): string => (url === '/docs/' ? '/docs/index.md' : `${url}.md`)

/**
 * Where a link of a page leads on the site. In the repository, links are relative paths, so that they also work on GitHub and in
 * an editor. A link to a file that is not part of the site leads to GitHub.
 */
export function siteLink(href: string, from: string, places: Places, isMarkdown = false): string {
  if (/^([a-z][a-z+.-]*:|#|\/)/i.test(href)) return href
  const [, path = '', hash = ''] = /^([^#]*)(#.*)?$/.exec(href) ?? []
  const target = posix.join(posix.dirname(from), path).replace(/\/$/, '')
  if (target === 'docs/openapi.json') return isMarkdown ? '/openapi.json' : '/docs/api'
  const url = places.get(target) ?? places.get(posix.join(target, 'README.md'))
  if (url !== undefined) return `${isMarkdown ? markdownUrl(url) : url}${hash}`
  const isFile = /\.\w+$/.test(target) || target === 'LICENSE'
  return `${REPOSITORY}/${isFile ? 'blob' : 'tree'}/main/${target}${hash}`
}

/** A page's Markdown with links that work at its URL on the site. Code is not changed. */
export function withSiteLinks(markdown: string, from: string, places: Places): string {
  return markdown
    .split(/(^```[\s\S]*?^```$|`[^`\n]*`)/m)
    .map((part, at) =>
      // Every second part is code. A link's text may contain code, so the text before `](` need not be in this part.
      at % 2 === 1 ? part : part.replace(/\]\(([^()\s]+)\)/g, (_, href: string) => `](${siteLink(href, from, places, true)})`),
    )
    .join('')
}
