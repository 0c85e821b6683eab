import { beforeAll, describe, expect, test } from 'vitest'
import type { Created } from '../support/crash.ts'
import { BEGUN, CrashMatrix, FUNDED_SAT, LOOKS, SPAWN, STOP } from '../support/crash-matrix.ts'
import { eventually } from '../support/server.ts'

describe('Reliability 1 and 14: the operations', () => {
  let matrix: CrashMatrix
  let node: Created

  beforeAll(async () => {
    matrix = await CrashMatrix.open()
    node = await matrix.yard.createReady()
    await matrix.yard.fund(node.node.id, FUNDED_SAT)
  })

  const answersWithItsFunds = async (): Promise<void> => {
    await matrix.answers(node)
    expect(await matrix.balanceOf(node)).toBe(FUNDED_SAT)
  }

  test.each([...BEGUN, ...LOOKS, ...STOP])('stop, at "%s" (%i)', async (point, nth) => {
    const { yard, catalogues } = matrix
    if ((await yard.view(node.node.id)).status === 'stopped') await matrix.operate(node, 'start')
    await matrix.dieAt(point, nth, catalogues.old, () => matrix.operate(node, 'stop'))
    await yard.becomes(node.node.id, 'stopped')
    await matrix.allIsWell()
    expect(yard.daemon(node.node.id)).toBeUndefined()
  })

  test.each([...BEGUN, ...LOOKS, ...SPAWN])('start, at "%s" (%i)', async (point, nth) => {
    const { yard, catalogues } = matrix
    if ((await yard.view(node.node.id)).status === 'ready') await matrix.operate(node, 'stop')
    await matrix.dieAt(point, nth, catalogues.old, () => matrix.operate(node, 'start'))
    await yard.becomes(node.node.id, 'ready')
    await matrix.allIsWell()
    await answersWithItsFunds()
  })

  test.each([...BEGUN, ...LOOKS, ...STOP, ...SPAWN])('restart, at "%s" (%i)', async (point, nth) => {
    const { yard, catalogues } = matrix
    await yard.becomes(node.node.id, 'ready')
    const before = yard.daemon(node.node.id)
    await matrix.dieAt(point, nth, catalogues.old, () => matrix.operate(node, 'restart'))
    await eventually(() => yard.daemon(node.node.id)?.startTime !== before?.startTime, 'another process')
    await matrix.operationEnded(node)
    await matrix.allIsWell()
    await answersWithItsFunds()
  })
})
