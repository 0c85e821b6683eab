import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { run } from '../support/commands.ts'
import { type Created, program, sandboxd, versions, Yard } from '../support/crash.ts'
import { eventually, PROCESS, temporaryDirectory } from '../support/server.ts'

/** reliability 22, C25: the database is restored from a backup that was made before nodes were updated. */

const [OLD, LATEST] = ['0.8.0', '0.9.0']
const directory = temporaryDirectory()
const file = join(directory, 'boltyard.backup')
const onNewData = join(directory, 'on-new-data')

let yard: Yard
let old: string
let running: Created
let stopped: Created

const command = (...args: string[]) =>
  run(args, { DATA_DIR: yard.dataDir, NODE_PRICE_SAT_PER_DAY: '0', ...versions({ [OLD]: old }) })
const both = (): Record<string, string> => versions({ [OLD]: old, [LATEST]: sandboxd(directory, LATEST) })
const versionOf = async ({ node, credentials }: Created): Promise<string> =>
  (await yard.node(node.id, credentials.password, 'GET', '/getinfo')).version

beforeAll(async () => {
  // After the update, any start of the old version creates a file.
  old = program(
    directory,
    'old',
    `test -e '${directory}/updated' && touch '${onNewData}'; exec '${sandboxd(directory, OLD)}' "$@"`,
  )
  yard = await new Yard({ command: PROCESS, store: 'embedded' }).start(versions({ [OLD]: old }))
  ;[running, stopped] = [await yard.createReady(), await yard.createReady()]
  expect(command('backup', file).code).toBe(0)

  await yard.restart('SIGTERM', both())
  for (const { node } of [running, stopped]) {
    await yard.expectOk(yard.v1('POST', `/${node.id}/update`))
    await yard.shows(node.id, ({ updateStatus }) => updateStatus === 'updated', 'the update to end')
  }
  program(directory, 'updated', '')
  await yard.expectOk(yard.v1('POST', `/${stopped.node.id}/stop`))
  await yard.becomes(stopped.node.id, 'stopped')

  await yard.stop()
  rmSync(join(yard.dataDir, 'postgres'), { recursive: true })
  expect(command('restore', file)).toMatchObject({ code: 0 })
})

test('C25: without that version in the catalog, a node that runs it keeps running, and one that is stopped says why it cannot start', async () => {
  const before = yard.daemon(running.node.id)
  await yard.start(versions({ [OLD]: old }))
  const { failureMessage } = await yard.becomes(stopped.node.id, 'failed')
  expect(failureMessage).toContain(`version ${LATEST} is not in the catalog`)
  await yard.becomes(running.node.id, 'ready')
  // The only version in the catalog is older than the one that runs.
  expect((await yard.v1('GET', `/${running.node.id}/updates`)).json().updateAvailable).toBe(false)
  expect((await yard.v1('POST', `/${running.node.id}/update`)).json().error.code).toBe('no_update_available')
  expect(yard.daemon(running.node.id)).toEqual(before)
})

test('C25: with that version in the catalog, both nodes run it, also after a restart, and the old one has never touched their data', async () => {
  await yard.restart('SIGTERM', both())
  await yard.becomes(running.node.id, 'ready')
  const before = yard.daemon(running.node.id)
  await yard.expectOk(yard.v1('POST', `/${running.node.id}/restart`))
  await eventually(() => ![undefined, before?.pid].includes(yard.daemon(running.node.id)?.pid), 'the restarted process')
  for (const created of [running, stopped]) {
    await yard.becomes(created.node.id, 'ready')
    expect(await eventually(() => versionOf(created), 'its API')).toBe(`${LATEST}-sandbox`)
    expect((await yard.v1('GET', `/${created.node.id}/updates`)).json()).toMatchObject({ currentVersion: `${LATEST}-sandbox` })
  }
  expect(existsSync(onNewData)).toBe(false)
})
