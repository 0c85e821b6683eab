import { readdirSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const read = (path: string): string => readFileSync(at(path), 'utf8')
const theme = read('src/styles/theme.css')

/** The properties that a theme sets, with their values. */
function tokensOf(scheme: 'light' | 'dark', area = ''): Record<string, string> {
  const start = theme.indexOf(`:root${area}[data-mantine-color-scheme="${scheme}"] {`)
  const block = theme.slice(start, theme.indexOf('}', start))
  return Object.fromEntries([...block.matchAll(/(--[\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]))
}

function luminance(color: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((start) => {
    const part = Number.parseInt(color.slice(start, start + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function contrast(one = '', other = ''): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

test('dashboard: colors are in theme.css only, so that both themes have them', () => {
  const sheets = [
    ...readdirSync(at('src/styles')).map((name) => `src/styles/${name}`),
    ...readdirSync(at('../site/client')).map((name) => `../site/client/${name}`),
  ].filter((path) => path.endsWith('.css') && !path.endsWith('theme.css') && !path.endsWith('code.css'))
  expect(sheets.length).toBeGreaterThan(10)
  const found = sheets.flatMap((path) =>
    [...read(path).matchAll(/#[0-9a-f]{3,8}\b(?=[;,) ])|--mantine-color-(indigo|blue)/g)].map(([color]) => `${path}: ${color}`),
  )
  expect(found).toEqual([])
})

test.each(['light', 'dark'] as const)('dashboard: text has a contrast of 4.5 in the %s theme', (scheme) => {
  for (const area of ['', '[data-area="operator"]']) {
    const color = { ...tokensOf(scheme), ...tokensOf(scheme, area) }
    const pairs: [text: string, ground: string][] = [
      ...['--page', '--surface', '--surface-soft'].flatMap((ground): [string, string][] =>
        ['--mantine-color-text', '--mantine-color-dimmed', '--accent-text'].map((text) => [text, ground]),
      ),
      ['--accent-text', '--accent-soft'],
      ['--toast-text', '--toast'],
      ...['good', 'busy', 'idle', 'bad', 'warn'].map((tone): [string, string] => [`--${tone}`, `--${tone}-soft`]),
    ]
    const low = pairs.filter(([text, ground]) => contrast(color[text], color[ground]) < 4.5)
    expect(low).toEqual([])
    // White on a filled button.
    expect(contrast('#ffffff', color['--accent'])).toBeGreaterThanOrEqual(4.5)
  }
})

test('dashboard: the typeface is shipped with its licence, and what the first page loads of it is at most 60 kB', () => {
  const urls = [...theme.matchAll(/url\("\.\.\/([^"]+)"\)/g)].map(([, path]) => `src/${path}`)
  expect(urls).toHaveLength(2)
  expect(theme.match(/url\((?!"\.\.\/fonts\/)/g)).toBeNull()
  for (const url of urls) expect(readFileSync(at(url)).subarray(0, 4).toString()).toBe('wOF2')
  const [, preloaded = ''] = /as="font"[^>]+href="\/([^"]+)"/.exec(read('index.html')) ?? []
  expect(urls).toContain(preloaded)
  expect(statSync(at(preloaded)).size).toBeLessThanOrEqual(60_000)
  expect(read('public/fonts/OFL.txt')).toContain('SIL OPEN FONT LICENSE')
})

test('dashboard: the mark is the same drawing everywhere', () => {
  const [, bolt = 'none'] = / d="(M2[^"]+)"/.exec(read('public/icon.svg')) ?? []
  expect(read('../sdk/src/paywall/page.ts')).toContain(bolt)
})
