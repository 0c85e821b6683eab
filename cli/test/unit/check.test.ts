import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { linkedDocuments } from '../../src/check/discovery/discovery.ts'
import { urlOf } from '../../src/check/discovery/operation.ts'
import { Findings } from '../../src/check/findings.ts'
import { checkTls } from '../../src/check/headers.ts'
import { OFFER_RULES } from '../../src/check/rules/offer-rules.ts'
import { SELLER_RULES } from '../../src/check/rules/seller-rules.ts'

test('docs/guides/check-a-seller.md lists exactly the rules of check, with their severities and texts', () => {
  const guide = readFileSync(new URL('../../../docs/guides/check-a-seller.md', import.meta.url), 'utf8')
  const rows = [...guide.matchAll(/^\| `([\w-]+)` \| (error|warning) \| (.*) \|$/gm)].map(([, ...row]) => row)
  const rules = Object.entries({ ...SELLER_RULES, ...OFFER_RULES })
  expect(rows).toEqual(rules.map(([id, { severity, expected }]) => [id, severity, expected]))
})

test.each([
  ['http://shop.example/', ['plain-http']],
  ['http://127.0.0.1.shop.example/', ['plain-http']],
  ['http://10.0.0.1/', ['plain-http']],
  ['https://shop.example/', []],
  ['http://127.0.0.1:3000/', []],
  ['http://localhost/', []],
  ['http://[::1]/', []],
  ['http://abc.onion/', []],
])('plain-http: %s has the findings %j', (url, ids) => {
  const findings = new Findings()
  checkTls(new URL(url), findings.of('GET /'))
  expect(findings.list.map(({ id }) => id)).toEqual(ids)
})

test.each([
  ['/a/{id}', 'https://shop.example/api/a/7', false],
  ['/a/{other}', 'https://shop.example/api/a/1', true],
  ['/a/:other/b', 'https://shop.example/api/a/1/b', true],
  ['//evil.example/', 'https://shop.example/api//evil.example/', false],
  ['/a?b=c', 'https://shop.example/api/a?b=c', false],
])('a path stays on its server: %s', (path, href, isGuessed) => {
  const target = urlOf(new URL('https://shop.example/api/'), path, new Map([['id', '7']]))
  expect([target?.url.href, target?.isGuessed]).toEqual([href, isGuessed])
})

test.each(['@evil.example/', '.evil.example/', ':80@evil.example/', ''])('a path without a slash is refused: "%s"', (path) => {
  expect(urlOf(new URL('https://shop.example'), path, new Map())).toBeUndefined()
})

test('links: only descriptions on the same server, at most three', () => {
  const url = new URL('https://shop.example/report')
  const links = (header: string): string[] => linkedDocuments(header, url).map(({ href }) => href)
  expect(links('</openapi.json>; rel="service-desc", <https://evil.example/>; rel="service-desc", </next>; rel=next')).toEqual([
    'https://shop.example/openapi.json',
  ])
  expect(links(Array.from({ length: 9 }, (_, at) => `</${at}>; rel=describedby`).join(', '))).toHaveLength(3)
})

test('the same fault in several visits is one finding, and long text is cut', () => {
  const findings = new Findings()
  for (let visit = 0; visit < 3; visit++) findings.of('GET /')('402-cacheable', 'x'.repeat(10_000))
  expect(findings.list.map(({ seen }) => seen.length)).toEqual([201])
})
