import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Created } from '../support/crash.ts'
import { BEGUN, CrashMatrix, FUNDED_SAT, LOOKS, type Point, SPAWN, STOP } from '../support/crash-matrix.ts'
import { eventually } from '../support/server.ts'

const COPY: Point[] = [
  ['copy: unfinished', 1],
  ['copy: kept', 1],
]
const GOOD: Point[] = [...BEGUN, ...LOOKS, ...STOP, ...COPY, ...SPAWN]
const BAD: Point[] = [
  ['restore: the new data is aside', 1],
  ['restore: the old data is back', 1],
  ['process: spawned', 1],
  ['process: spawned', 3],
  ['process: spawned', 4],
]

describe('Reliability 1 and 14: update', () => {
  let matrix: CrashMatrix
  /**
   * One node for each entry of GOOD and BAD. They are created while only the old version is offered, because new nodes get the
   * latest version.
   */
  let nodes: Created[]

  beforeAll(async () => {
    matrix = await CrashMatrix.open()
    const { yard, catalogues } = matrix
    nodes = await Promise.all([...GOOD, ...BAD].map(() => yard.createReady()))
    for (const { node } of nodes) await yard.fund(node.id, FUNDED_SAT)
    await yard.restart('SIGKILL', catalogues.both)
  })

  const next = (): Created => {
    const node = nodes.shift()
    if (!node) throw new Error('more rows than nodes')
    return node
  }
  const gone = async (node: Created): Promise<void> => {
    await matrix.operationEnded(node)
    await matrix.delete(node, '?force=true')
    await matrix.allIsWell()
  }

  test.each(GOOD)('at "%s" (%i)', async (point, nth) => {
    const { yard, catalogues } = matrix
    const node = next()
    await matrix.dieAt(point, nth, catalogues.both, () => matrix.operate(node, 'update'))
    await yard.shows(node.node.id, ({ updateStatus }) => updateStatus === 'updated', 'the update')
    await matrix.allIsWell()
    await matrix.answers(node, '0.9.0')
    expect(await matrix.balanceOf(node)).toBe(FUNDED_SAT)
    expect(readFileSync(`${yard.copyOf(node.node.id, '0.8.0')}/seed.dat`, 'utf8')).toBe(node.credentials.seed)
    await gone(node)
  })

  describe('of a bad version', () => {
    beforeAll(async () => {
      await matrix.yard.restart('SIGKILL', matrix.catalogues.bad)
    })

    test.each(BAD)('at "%s" (%i): it is rolled back with the data from before the update', async (point, nth) => {
      const { yard, catalogues } = matrix
      const node = next()
      await matrix.dieAt(point, nth, catalogues.bad, () => matrix.operate(node, 'update'))
      const view = await yard.shows(node.node.id, ({ updateStatus }) => updateStatus === 'failed', 'the end')
      expect(view.updateCompletedAt).not.toBeNull()
      await yard.becomes(node.node.id, 'ready')
      await eventually(() => matrix.answers(node, '0.8.0').then(() => true), 'the old version to answer')
      await matrix.allIsWell()
      expect(await matrix.balanceOf(node)).toBe(FUNDED_SAT)
      await gone(node)
    })
  })
})
