import { expect, test } from 'vitest'
import { distinctNames } from '../src/text/node-names.ts'

test('dashboard: nodes of one name are told apart by their ids, and no others show theirs', () => {
  const names = distinctNames([
    { id: 'node_aaaaaaaaaaaaaaa11111', name: 'Shop' },
    { id: 'node_aaaaaaaaaaaaaaa22222', name: 'Shop' },
    { id: 'node_aaaaaaaaaaaaaaa33333', name: 'Podcast' },
  ])
  expect([...names.values()]).toEqual(['Shop (…11111)', 'Shop (…22222)', 'Podcast'])
})
