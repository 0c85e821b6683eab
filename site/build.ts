import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleAssets } from './src/assets.ts'
import { missingPageHtml, pageHtml } from './src/layout.ts'
import { markdownUrl } from './src/links.ts'
import { writeFiles } from './src/output.ts'
import { readSite } from './src/pages.ts'

/**
 * Builds the site into dist/. The service may be serving the previous site, so that is replaced only when the new one is
 * complete.
 */
const here = fileURLToPath(new URL('.', import.meta.url))
const [built, dist, old] = ['dist-new', 'dist', 'dist-old'].map((name) => join(here, name)) as [string, string, string]

const { pages, llms } = readSite()
const sections = pages.flatMap(({ url, title, sections: own }) =>
  own.map((section) => ({
    url: section.id === '' ? url : `${url}#${section.id}`,
    page: title,
    title: section.title,
    text: section.text,
  })),
)
const { files, assets } = await bundleAssets(here, JSON.stringify(sections))
const fileOf = (url: string): string => url.replace(/^\/docs\//, '') || 'index'
for (const page of pages) {
  files.set(`${fileOf(page.url)}.html`, pageHtml(page, pages, assets))
  files.set(markdownUrl(page.url).replace('/docs/', ''), page.markdown)
}
files.set('404.html', missingPageHtml(pages, assets))
files.set('llms.txt', llms)

rmSync(built, { recursive: true, force: true })
await writeFiles(built, files)
rmSync(old, { recursive: true, force: true })
mkdirSync(dist, { recursive: true })
renameSync(dist, old)
renameSync(built, dist)
rmSync(old, { recursive: true, force: true })
