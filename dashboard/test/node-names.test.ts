import { expect, test } from 'vitest'
import { distinctNames, nodesNamed } from '../src/text/node-names.ts'

test('dashboard: nodes of one name are told apart by their ids, and no others show theirs', () => {
  const names = distinctNames([
    { id: 'node_aaaaaaaaaaaaaaa11111', name: 'Shop' },
    { id: 'node_aaaaaaaaaaaaaaa22222', name: 'Shop' },
    { id: 'node_aaaaaaaaaaaaaaa33333', name: 'Podcast' },
  ])
  expect([...names.values()]).toEqual(['Shop (…11111)', 'Shop (…22222)', 'Podcast'])
})

test('dashboard: a search finds up to three nodes by a part of their names, or those of exactly this name', () => {
  const shops = Array.from({ length: 12 }, (_, place) => ({ id: `node_${place}`, name: `Shop ${place}` }))
  const found = (search: string, nodes = shops) => nodesNamed(nodes, search).map(({ name }) => name)
  expect(found(' shop 11 ')).toEqual(['Shop 11'])
  expect(found('P 1')).toEqual(['Shop 1', 'Shop 10', 'Shop 11'])
  expect(found('shop')).toEqual([])
  expect(found('tea')).toEqual([])
  expect(found(' ')).toEqual([])
  const more = [...shops, { id: 'node_x', name: 'Shop 1b' }]
  expect(found('shop 1', more)).toEqual(['Shop 1'])
  expect(found('shop', Array(4).fill({ id: 'node_y', name: 'Shop' }))).toEqual([])
})
