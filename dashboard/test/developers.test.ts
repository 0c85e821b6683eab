import { expect, test } from 'vitest'
import { publicOperations } from '../../contract/src/operations.ts'
import { requestFilterOf } from '../src/api/developers.ts'
import { daysOf } from '../src/pages/developers/days.ts'
import { changeOf, type Fields } from '../src/pages/developers/key-fields.ts'
import { isMeant } from '../src/pages/developers/key-search.ts'
import { API_ROUTES } from '../src/text/api-routes.ts'
import { snippetsIn } from '../src/text/code/program-snippets.ts'

test('the filter of requests offers exactly the paths that API keys can call', () => {
  const paths = publicOperations.filter(({ caller }) => caller === 'apiKey').map(({ path }) => path)
  expect(API_ROUTES).toEqual([...new Set<string>(paths)].toSorted())
})

test('usage is unknown before counting began and before the key existed, and 0 only on days that were counted', () => {
  const usage = {
    today: '2026-03-02',
    since: '2026-02-20',
    days: [
      { keyId: 'a', day: '2026-02-28', requests: 5, errors: 1 },
      { keyId: 'b', day: '2026-03-01', requests: 7, errors: 0 },
    ],
  }
  const known = (createdAt: string) =>
    daysOf({ id: 'a', createdAt: Date.parse(createdAt) / 1000 }, usage)
      .filter(({ requests }) => requests !== null)
      .map(({ day, requests, errors }) => [day, requests, errors])
  expect(daysOf({ id: 'a', createdAt: 0 }, usage)).toHaveLength(30)
  expect(known('2025-01-01T00:00:00Z').map(([day]) => day)).toEqual([
    ...Array.from({ length: 9 }, (_, index) => `2026-02-${20 + index}`),
    '2026-03-01',
    '2026-03-02',
  ])
  expect(known('2026-02-28T23:59:59Z')).toEqual([
    ['2026-02-28', 5, 1],
    ['2026-03-01', 0, 0],
    ['2026-03-02', 0, 0],
  ])
})

test.each([
  ['server 2', true],
  ['byk_sg', true],
  ['BYK_SGNE', true],
  ['sgN', true],
  ['key_17x4', true],
  ['key_17x4q', true],
  ['17', false],
  ['key_', false],
  ['key_x4q', false],
  ['gne', false],
])(
  'a key is found by its name, its first characters or its pasted id, not by what is not shown: “%s” is %s',
  (search, isFound) => {
    expect(isMeant({ id: 'key_17x4q0000000000000ne', name: 'Server 2', prefix: 'byk_sgNE' }, ` ${search} `)).toBe(isFound)
  },
)

test('the filter in a URL keeps only values that the service accepts', () => {
  expect(requestFilterOf({ status: 4, requestId: 'a b', keyId: '', route: '/v1/nodes' })).toEqual({
    keyId: undefined,
    status: '4',
    route: '/v1/nodes',
    requestId: undefined,
  })
})

test('no snippet contains a key, and each takes it from the environment', () => {
  for (const language of ['curl', 'typescript', 'python'] as const)
    for (const code of Object.values(snippetsIn(language, 'http://localhost:8402/', 'node_1'))) {
      expect(code).toContain('SERVICE_API_KEY')
      expect(code).toContain('http://localhost:8402/v1/')
    }
})

test('C84: editing a key sends only what was changed, so that a scope removed elsewhere does not return', () => {
  const before: Fields = { name: 'Shop', scopes: ['nodes:read', 'nodes:write'], expiry: 'never', date: '' }
  expect(changeOf(before, { ...before, name: ' Café ' })).toEqual({ name: 'Café' })
  expect(changeOf(before, { ...before, scopes: ['nodes:read'] })).toEqual({ scopes: ['nodes:read'] })
  expect(changeOf(before, before)).toEqual({})
  expect(changeOf({ ...before, expiry: 'keep' }, { ...before, expiry: 'keep' })).toEqual({})
  expect(changeOf({ ...before, expiry: 'keep' }, before)).toEqual({ expiresAt: null })
  expect(changeOf(before, { ...before, expiry: '7' }).expiresAt).toBeGreaterThan(Date.now() / 1000)
})
