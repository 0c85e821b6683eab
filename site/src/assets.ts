import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build } from 'esbuild'
import type { Assets } from './layout.ts'

/** Bundles scripts and styles. Names carry a hash of the content, so that browsers may keep them for ever. */
export async function bundleAssets(
  here: string,
  searchIndex: string,
): Promise<{ files: Map<string, string | Uint8Array>; assets: Assets }> {
  const { outputFiles } = await build({
    entryPoints: ['site.ts', 'site.css'].map((name) => join(here, 'client', name)),
    outdir: '/assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    loader: { '.woff2': 'file', '.svg': 'file' },
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    logLevel: 'warning',
  })
  const files = new Map<string, string | Uint8Array>(
    outputFiles.map(({ path, contents }) => [`assets/${basename(path)}`, contents]),
  )
  const add = (name: string, text: string): string => {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 8)
    const path = `assets/${name.replace('.', `-${hash}.`)}`
    files.set(path, text)
    return `/docs/${path}`
  }
  const urlOf = (pattern: RegExp): string => `/docs/${[...files.keys()].find((name) => pattern.test(name)) ?? ''}`
  files.set('assets/OFL.txt', readFileSync(join(here, '../dashboard/public/fonts/OFL.txt')))
  const shared = (name: string): string => readFileSync(join(here, '../dashboard/public', name), 'utf8')
  return {
    files,
    assets: {
      style: urlOf(/site-\w+\.css$/),
      script: urlOf(/site-\w+\.js$/),
      font: urlOf(/-latin-\w{8}\.woff2$/),
      // The dashboard's own script, so that both store a person's choice of light or dark in the same place.
      scheme: add('scheme.js', shared('scheme.js')),
      icon: urlOf(/icon-\w+\.svg$/),
      search: add('search.json', searchIndex),
    },
  }
}
