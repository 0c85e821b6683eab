import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { hasPgBouncer, TestPgBouncer } from '../../../testing/pgbouncer.ts'
import { createDatabase, dropDatabase } from '../../../testing/postgres.ts'
import { openStore } from '../../src/store/db.ts'
import { charge, credentialOf, newMerchant, pay, redeem, untilKnown } from '../support/gateway.ts'
import type { Created, Owner } from '../support/nodes.ts'
import { eventually, PROCESS, type Server, type Store, startServer, track } from '../support/server.ts'

/** Two replicas whose only way to PostgreSQL is PgBouncer in session mode, as in docs/operations.md. */

const isWanted = hasPgBouncer || process.env.CI === 'true'
if (!isWanted) process.stderr.write('\n### SKIPPED: pgbouncer.test.ts: pgbouncer is not installed ###\n\n')

describe.skipIf(!isWanted)('behind PgBouncer in session mode', () => {
  let store: Store
  let bouncer: TestPgBouncer
  let first: Server
  let second: Server
  let merchant: Owner
  let created: Created

  beforeAll(async () => {
    store = await createDatabase(inject('postgres'))
    bouncer = new TestPgBouncer(store)
    await bouncer.start()
    const env = {
      DATABASE_URL: bouncer.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      TRUST_PROXY: '1',
      NODE_PRICE_SAT_PER_DAY: '0',
    }
    first = await startServer({ command: PROCESS, env })
    const api = { ...env, ROLE: 'api', NODE_CALLBACK_URL: first.url }
    second = await startServer({ command: PROCESS, dataDir: first.dataDir, env: api })
    merchant = await newMerchant(first)
    created = await merchant.createReady()
  })
  afterAll(async () => {
    await Promise.all([first?.stop(), second?.stop()])
    await bouncer?.remove()
    if (store) await dropDatabase(inject('postgres'), store)
  })

  const sell = async (): Promise<number> => {
    const payment = await charge(merchant, created)
    const credential = credentialOf(payment, await pay(first, payment))
    return (await untilKnown(() => redeem(merchant, payment.id, credential))).status
  }

  test('a node is created and sells', async () => {
    expect(await sell()).toBe(200)
  })

  test('a notification reaches the listeners of other connections', async () => {
    const [listening, notifying] = [track(openStore(bouncer.url, 1)), track(openStore(bouncer.url, 1))]
    const heard: string[] = []
    const stop = listening.listen('test', { onNotify: (payload) => heard.push(payload), onStart: () => undefined })
    await eventually(async () => {
      await notifying`SELECT pg_notify('test', 'hello')`
      return heard.includes('hello')
    }, 'the notification')
    stop()
  })

  test('when PgBouncer is killed and started again, both replicas go on', async () => {
    await bouncer.kill()
    expect((await first.send('GET', '/readyz')).status).toBe(503)
    await bouncer.start()
    for (const server of [first, second])
      await eventually(async () => (await server.send('GET', '/readyz')).status === 200, 'the replica to be ready again')
    expect(await eventually(sell, 'a sale')).toBe(200)
  })
})
