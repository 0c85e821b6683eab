import { expect, test } from 'vitest'
import { Orphans } from '../../src/nodes/orphans.ts'
import { newId } from '../../src/platform/ids.ts'
import type { Logger } from '../../src/platform/log.ts'
import { freshDatabase, newAccount, newNode } from '../support/credit.ts'

test('nodes that are in the cluster but not in the database are reported, and nothing else happens to them', async () => {
  const { sql, clock } = await freshDatabase()
  const accountId = await newAccount(sql)
  const [kept, deleted, purged] = [
    await newNode(sql, accountId),
    await newNode(sql, accountId, { isDeleted: true }),
    await newNode(sql, accountId, { desired: 'deleted', isDeleted: true }),
  ]
  await sql`UPDATE nodes SET purging_at = now(), purged_at = now() WHERE id = ${purged}`
  const unknown = newId('node')
  const warnings: unknown[] = []
  const log: Logger = { info: () => undefined, warn: (what: unknown) => void warnings.push(what), error: () => undefined }
  let seen: string[] | undefined
  const orphans = new Orphans({ sql, nodesSeen: () => seen, log })

  await orphans.pass()
  expect([orphans.count, warnings]).toEqual([undefined, []])
  seen = [kept, deleted, purged]
  await orphans.pass()
  expect([orphans.count, warnings], 'a purge may have just ended').toEqual([0, []])
  seen = [kept, deleted, purged, unknown]
  await clock.move(2 * 3_600)
  await orphans.pass()
  expect(orphans.count).toBe(2)
  expect(warnings).toEqual([{ nodeIds: [purged, unknown].sort(), count: 2 }])
  await orphans.close()
})
