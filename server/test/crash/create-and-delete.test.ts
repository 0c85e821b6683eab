import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { CRASHING_SERVER, SERVER } from '../../../testing/bundles.ts'
import { type Created, hubsIn } from '../support/crash.ts'
import { BEGUN, CrashingYard, CrashMatrix, LOOKS, SPAWN, STOP } from '../support/crash-matrix.ts'

let matrix: CrashMatrix

beforeAll(async () => {
  matrix = await CrashMatrix.open()
})

describe('Reliability 1 and 14: create', () => {
  test.each([['create: not yet committed', 1], ['create: committed', 1], ...LOOKS, ...SPAWN] as const)(
    'at "%s" (%i)',
    async (point, nth) => {
      const { yard, catalogues } = matrix
      const before = (await yard.list()).length
      const headers = { 'idempotency-key': `${point} ${nth}` }
      const answer = await matrix.dieAt(point, nth, catalogues.old, () => yard.create(headers), 'create: committed')
      await matrix.allIsWell()
      if (point === 'create: not yet committed') {
        expect(answer).toBeInstanceOf(Error)
        expect(await yard.list()).toHaveLength(before)
        return
      }
      // A client that got no answer repeats the request with the same key and gets the answer.
      const again = await yard.create(headers)
      if (!(answer instanceof Error)) expect(again).toEqual(answer)
      expect(await yard.list()).toHaveLength(before + 1)
      await matrix.answers(again)
      await matrix.delete(again)
      await matrix.allIsWell()
    },
  )
})

describe('Reliability 1 and 14: delete', () => {
  let node: Created
  beforeAll(async () => {
    node = await matrix.yard.createReady()
  })

  test.each([...BEGUN, ...LOOKS, ...STOP])('at "%s" (%i)', async (point, nth) => {
    const { yard, catalogues } = matrix
    await matrix.dieAt(point, nth, catalogues.old, () => matrix.delete(node))
    await matrix.allIsWell()
    expect((await yard.v1('GET', `/${node.node.id}`)).status).toBe(404)
    expect(yard.daemon(node.node.id)).toBeUndefined()
    // The data of a deleted node is kept, so the node can be restored.
    await matrix.operationEnded(node)
    await yard.expectOk(yard.operator('POST', `/nodes/${node.node.id}/undelete`))
    await matrix.operate(node, 'start')
    await matrix.answers(node)
    await matrix.allIsWell()
  })
})

test.each(SPAWN)(
  'if the service dies at "%s" (%i) while it starts the sandbox hub, there is one hub afterwards',
  async (point) => {
    const other = new CrashingYard()
    await other.launch({ CRASH_AT: point })
    expect((await other.exited).signal).toBe('SIGKILL')
    await other.start()
    const node = await other.createReady()
    await other.fund(node.node.id, 1_000)
    expect(hubsIn(other.dataDir)).toEqual([other.hubPid])
  },
)

test('the published service contains no crash points', () => {
  const withCrashPoints = (main: string): string[] =>
    readdirSync(dirname(main), { withFileTypes: true })
      .filter((entry) => entry.isFile() && /CRASH_(AT|FILE)/.test(readFileSync(join(dirname(main), entry.name), 'utf8')))
      .map(({ name }) => name)
  // Shows that the search works: in the test build, one of the chunks has crash points.
  expect(withCrashPoints(CRASHING_SERVER)).toHaveLength(1)
  expect(withCrashPoints(SERVER)).toEqual([])
})
