import hljs from 'highlight.js/lib/core'
import shell from 'highlight.js/lib/languages/bash'
import http from 'highlight.js/lib/languages/http'
import ini from 'highlight.js/lib/languages/ini'
import json from 'highlight.js/lib/languages/json'
import python from 'highlight.js/lib/languages/python'
import typescript from 'highlight.js/lib/languages/typescript'
import yaml from 'highlight.js/lib/languages/yaml'
import MarkdownIt from 'markdown-it'
import { relationsOf } from './diagram.ts'
import { type Places, siteLink } from './links.ts'

export type Heading = { level: number; id: string; text: string }
/** What the search finds: the text below one heading. */
export type Section = { id: string; title: string; text: string }
export type Rendered = { html: string; title: string; description: string; headings: Heading[]; sections: Section[] }

const LANGUAGES = { http, ini, json, python, sh: shell, ts: typescript, js: typescript, yaml }
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language)

/** A numbered line of the contract, which other pages and people link to. */
const CONTRACT_LINE = /^(C\d+|S\d\d|[PBD]\d+|(MPP|L402) §?\d+|selling \d+|security \d+|Reliability \d+)$/
const ENDPOINT = /^(GET|POST|PATCH|PUT|DELETE) (\/\S*)$/

const markdown = new MarkdownIt({ html: false, linkify: false })
const { escapeHtml } = markdown.utils

export { escapeHtml }

type Env = { from: string; places: Places }
type Token = ReturnType<typeof markdown.parse>[number]

const rules = markdown.renderer.rules
rules.fence = (tokens, at) => {
  const { info, content } = tokens[at] as Token
  if (info === 'mermaid') return markdown.render(relationsOf(content))
  const isKnown = hljs.getLanguage(info) !== undefined
  const code = isKnown ? hljs.highlight(content, { language: info }).value : escapeHtml(content)
  // A wide block scrolls, and what scrolls must be reachable by keyboard.
  return `<div class="code"><pre tabindex="0"><code>${code}</code></pre></div>\n`
}
rules.table_open = () => '<div class="table" role="group" aria-label="Table" tabindex="0"><table>\n'
rules.table_close = () => '</table></div>\n'
rules.heading_close = (tokens, at) => {
  const { tag } = tokens[at] as Token
  const [id, text] = [tokens[at - 2]?.attrGet('id') ?? '', textOf(tokens[at - 1])]
  if (tag === 'h1') return '</h1>\n'
  return ` <a class="anchor" href="#${id}" aria-label="Link to “${escapeHtml(text)}”">#</a></${tag}>\n`
}

/** Renders a page. A page links to others by their paths in the repository. */
export function render(source: string, env: Env): Rendered {
  const tokens = markdown.parse(source, env)
  const headings = addIds(tokens)
  for (const token of tokens) for (const child of token.children ?? []) finishInline(child, env)
  markContractLines(tokens)
  markEndpoints(tokens)
  emptyHeadersToCells(tokens)
  const title = headings.find(({ level }) => level === 1)?.text ?? ''
  return {
    html: markdown.renderer.render(tokens, markdown.options, env),
    title,
    description: descriptionOf(tokens),
    headings,
    sections: sectionsOf(tokens, title),
  }
}

/** The ids that GitHub gives to headings, so that a link with `#` works in both places. */
function addIds(tokens: Token[]): Heading[] {
  const used = new Map<string, number>()
  return tokens.flatMap((token, at) => {
    if (token.type !== 'heading_open') return []
    const text = textOf(tokens[at + 1])
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    const count = used.get(slug) ?? 0
    used.set(slug, count + 1)
    const id = count === 0 ? slug : `${slug}-${count}`
    token.attrSet('id', id)
    return [{ level: Number(token.tag.slice(1)), id, text }]
  })
}

function finishInline(token: Token, { from, places }: Env): void {
  const href = token.type === 'link_open' ? token.attrGet('href') : null
  if (href !== null) token.attrSet('href', siteLink(String(href), from, places))
}

function markContractLines(tokens: Token[]): void {
  for (const { children } of tokens)
    if (children?.[1]?.type === 'strong_open' && CONTRACT_LINE.test(children[2]?.content ?? ''))
      children[1].attrSet('id', (children[2]?.content ?? '').toLowerCase().replace(' §', '-section-').replace(' ', '-'))
}

/** In the reference, a paragraph that is only `METHOD /path` in code is shown with a badge. */
function markEndpoints(tokens: Token[]): void {
  for (const [at, { type, children }] of tokens.entries()) {
    const [, method, path] =
      ENDPOINT.exec(children?.length === 1 && children[0]?.type === 'code_inline' ? children[0].content : '') ?? []
    const open = tokens[at - 1]
    if (type !== 'inline' || method === undefined || path === undefined || open?.type !== 'paragraph_open' || !children) continue
    open.attrSet('class', 'endpoint')
    const badge = markdown.parseInline(`**${method}** \`${path}\``, {})[0]?.children ?? []
    badge[1]?.attrSet('class', `method ${method.toLowerCase()}`)
    children.splice(0, 1, ...badge)
  }
}

/** The corner of a table often has no text, and a screen reader would announce a header without a name. */
function emptyHeadersToCells(tokens: Token[]): void {
  for (const [at, token] of tokens.entries()) {
    const [text, close] = [tokens[at + 1], tokens[at + 2]]
    if (token.type === 'th_open' && text?.content === '' && close) token.tag = close.tag = 'td'
  }
}

function textOf(token: Token | undefined): string {
  const parts = token?.children ?? []
  return parts.map(({ type, content }) => (type === 'softbreak' || type === 'hardbreak' ? ' ' : content)).join('')
}

const DESCRIPTION_LENGTH = 160

/** The page's first sentences, for search engines and link previews. */
function descriptionOf(tokens: Token[]): string {
  const first = tokens.findIndex(({ type, level }) => type === 'paragraph_open' && level === 0)
  const text = textOf(tokens[first + 1]).replace(/^Back to [^.]*\. /, '')
  if (text.length <= DESCRIPTION_LENGTH) return text
  return `${text.slice(0, DESCRIPTION_LENGTH - 1).replace(/\s+\S*$/, '')}…`
}

const DEEPEST_SECTION = 3

function sectionsOf(tokens: Token[], title: string): Section[] {
  const sections: Section[] = [{ id: '', title, text: '' }]
  for (const [at, token] of tokens.entries()) {
    const opener = tokens[at - 1]
    const isHeading = token.type === 'inline' && opener?.type === 'heading_open'
    if (isHeading && opener.tag === 'h1') continue
    if (isHeading && Number(opener.tag.slice(1)) <= DEEPEST_SECTION)
      sections.push({ id: String(opener.attrGet('id') ?? ''), title: textOf(token), text: '' })
    else if (token.type === 'inline' || token.type === 'fence') {
      const last = sections.at(-1)
      if (last) last.text += `${token.type === 'fence' ? token.content : textOf(token)} `.replace(/\s+/g, ' ')
    }
  }
  return sections
}
