import { cpSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { adopt, command, contentsOf, idOf, phoenixdOf } from '../nodes/moving/moving.ts'
import { type Created, daemonsIn, Yard } from '../support/crash.ts'
import { type Key, temporaryDirectory } from '../support/server.ts'

/** The command dies between two steps; the operator repeats it. */

const FUNDED_SAT = 5_000
const MARK = ['move: the words are kept', 'move: no daemon can start']

let yard: Yard
let owner: Key

beforeAll(async () => {
  yard = await new Yard({ env: { MAX_NODES_PER_ACCOUNT: '200' } }).start()
  owner = await yard.newKey(['nodes:write'])
})

const diesAt = async (point: string, args: string[]): Promise<void> => {
  const { signal, stderr } = await command(yard, args, point)
  expect(signal, `"${point}" was reached: ${stderr}`).toBe('SIGKILL')
}

async function funded(origin: Yard): Promise<Created> {
  const created = await origin.createReady()
  await origin.fund(created.node.id, FUNDED_SAT)
  return created
}

/** The node runs in one process and has all of its money, and every directory belongs to a node. */
async function isWell(id: string, { credentials }: Created): Promise<void> {
  await yard.expectOk(yard.send('POST', `/v1/nodes/${id}/start`, { token: owner.key }))
  expect((await yard.node(id, credentials.password, 'GET', '/getbalance')).balanceSat).toBe(FUNDED_SAT)
  expect(daemonsIn(yard.dataDir).filter(({ nodeId }) => nodeId === id)).toHaveLength(1)
  const rows = await yard.sql()`SELECT id FROM nodes`
  const directories = readdirSync(join(yard.dataDir, 'nodes'))
  expect(directories.filter((name) => !rows.some((row) => row.id === name))).toEqual([])
  expect(readdirSync(join(yard.dataDir, 'adopting'))).toEqual(['lock'])
}

describe('Reliability 1 and 14: adopt', () => {
  let origin: Yard
  beforeAll(async () => {
    origin = await new Yard().start()
  })

  test.each([
    'adopt: the id is chosen',
    ...MARK,
    'adopt: copied',
    'adopt: in place',
    'adopt: not yet committed',
    'adopt: committed',
  ])('at "%s"', async (point) => {
    const created = await funded(origin)
    const directory = await phoenixdOf(origin, created)
    const before = (await yard.sql()`SELECT 1 FROM nodes`).length
    await diesAt(point, ['adopt', directory, '--account', owner.accountId, '--version', '0.8.0'])
    const isThere = point === 'adopt: committed'
    expect(await yard.sql()`SELECT 1 FROM nodes`).toHaveLength(before + (isThere ? 1 : 0))
    const again = await adopt(yard, directory, owner, '--version', '0.8.0')
    expect(again.stderr).toMatch(isThere ? /^Already adopted/ : /^Adopted/)
    expect(await yard.sql()`SELECT 1 FROM nodes`).toHaveLength(before + 1)
    await isWell(idOf(again), created)
  })
})

test('C70: an interrupted adoption is finished from its own directory, even if that was renamed, and from no other copy', async () => {
  const origin = await new Yard().start()
  const created = await funded(origin)
  const directory = await phoenixdOf(origin, created)
  const [copy, renamed] = [`${directory}-copy`, `${directory}-renamed`]
  cpSync(directory, copy, { recursive: true })
  const adoption = (path: string): string[] => ['adopt', path, '--account', owner.accountId, '--version', '0.8.0']
  // Until the command has replaced the seed.dat of one copy, the operator may still adopt another copy.
  await diesAt('adopt: the id is chosen', adoption(copy))
  await diesAt('adopt: copied', adoption(directory))
  const before = contentsOf(copy)
  const refusal = { code: 78, stderr: expect.stringContaining(`already begun with ${directory}`) }
  expect(await command(yard, adoption(copy))).toMatchObject(refusal)
  renameSync(directory, renamed)
  expect(await command(yard, adoption(copy))).toMatchObject(refusal)
  // Another copy is refused even in the place of the original.
  cpSync(copy, directory, { recursive: true })
  expect(await command(yard, adoption(directory))).toMatchObject(refusal)
  expect([contentsOf(copy), contentsOf(directory)]).toEqual([before, before])
  await isWell(idOf(await command(yard, adoption(renamed))), created)
})

describe('Reliability 1 and 14: release', () => {
  test.each(['release: recorded', 'release: stopped', ...MARK, 'release: copied', 'release: exported'])(
    'at "%s"',
    async (point) => {
      const created = await funded(yard)
      const { id } = created.node
      const parent = temporaryDirectory()
      const directory = join(parent, 'released')
      await diesAt(point, ['release', id, directory])
      // Wherever the command died, this installation no longer has the node.
      expect((await yard.v1('GET', `/${id}`)).status).toBe(404)
      expect((await yard.operator('POST', `/nodes/${id}/undelete`)).status).toBeGreaterThanOrEqual(404)
      expect(await command(yard, ['release', id, directory])).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/^Released/),
      })
      expect(readdirSync(parent)).toEqual(['released'])
      expect(yard.daemon(id)).toBeUndefined()
      await isWell(idOf(await adopt(yard, directory, owner)), created)
    },
  )
})
