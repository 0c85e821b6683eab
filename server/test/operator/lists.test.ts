import { beforeAll, describe, expect, test } from 'vitest'
import { signUp } from '../support/dashboard.ts'
import { newOwner } from '../support/nodes.ts'
import { eventually, type Server, startServer } from '../support/server.ts'

let server: Server
beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', RETENTION_DAYS: '30' } })
})

const get = async (path: string) => {
  const answer = await server.operator('GET', path)
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`)
  return answer.json()
}
const give = (id: string, json: object, key?: string) =>
  server.operator('POST', `/accounts/${id}/credit`, { json, ...(key ? { headers: { 'idempotency-key': key } } : {}) })

describe('the operator finds accounts', () => {
  test('by a part of the name or email, by id, and by the id of a node; special characters stand for themselves', async () => {
    const ann = await signUp(server)
    const plain = await server.newAccount({ name: 'Ünder_score 100%' })
    const found = async (search: string): Promise<string[]> =>
      (await get(`/accounts?search=${encodeURIComponent(search)}`)).accounts.map(({ id }: { id: string }) => id)
    expect(await found(` ${ann.email.toUpperCase().slice(0, -4)} `)).toEqual([ann.accountId])
    expect(await found(ann.accountId)).toEqual([ann.accountId])
    for (const search of ['Ünd', 'DER_', 'r_s', '100%']) expect([search, await found(search)]).toEqual([search, [plain.id]])
    for (const search of ['r%s', '\\', 'nobody', '\0']) expect([search, await found(search)]).toEqual([search, []])
    const owner = await newOwner(server)
    const { node } = await owner.create()
    expect(await found(node.id)).toEqual([owner.accountId])
  })

  test('page by page, from either end; a bad cursor is a 400', async () => {
    for (let count = 0; count < 3; count++) await server.newAccount({ name: 'paged' })
    const all = (await get('/accounts?search=paged')).accounts.map(({ id }: { id: string }) => id)
    expect(all).toEqual([...all].sort())
    const walk = async (order: string): Promise<string[]> => {
      const ids: string[] = []
      for (let cursor = ''; ; ) {
        const page = await get(`/accounts?search=paged&limit=2&order=${order}${cursor && `&cursor=${cursor}`}`)
        ids.push(...page.accounts.map(({ id }: { id: string }) => id))
        if (page.nextCursor === null) return ids
        cursor = page.nextCursor
      }
    }
    expect(await walk('oldest')).toEqual(all)
    expect(await walk('newest')).toEqual([...all].reverse())
    expect((await server.operator('GET', '/accounts?cursor=nonsense')).status).toBe(400)
  })

  test('with how its owner signs in, how many nodes it has, and the balance its owner sees', async () => {
    const ann = await signUp(server)
    const account = await get(`/accounts/${ann.accountId}`)
    expect(account).toMatchObject({ emails: [ann.email], signInMethods: ['password'], nodes: 0, creditSat: 10_000 })
    expect(account).toMatchObject({ creditLeftSat: 10_000, runwaySeconds: null, stopsAt: null })
    await ann.create()
    const after = await get(`/accounts/${ann.accountId}`)
    expect([after.nodes, after.runwaySeconds]).toEqual([1, expect.any(Number)])
    expect(await server.newAccount()).toMatchObject({ emails: [], signInMethods: [], nodes: 0 })
  })
})

describe('C41: credit', () => {
  test('C41: is given once, however often the request is repeated with its key, and the response has the balance after it', async () => {
    const { id } = await server.newAccount({ creditSat: 100 })
    const json = { amountSat: 50, reason: 'Goodwill' }
    const answers = await Promise.all(Array.from({ length: 5 }, () => give(id, json, 'once')))
    const first = answers.find(({ status }) => status === 201)?.json()
    expect(first).toMatchObject({ amountSat: 50, reason: 'Goodwill', creditSat: 150 })
    expect((await give(id, json, 'once')).json()).toEqual(first)
    expect((await get(`/accounts/${id}`)).creditSat).toBe(150)
    const other = await give(id, { ...json, amountSat: 51 }, 'once')
    expect([other.status, other.json().error.code]).toEqual([409, 'idempotency_conflict'])
    // The same key for another account is another request; and without a key, each request counts.
    const { id: second } = await server.newAccount({ creditSat: 0 })
    expect((await give(second, json, 'once')).json().creditSat).toBe(50)
    expect([(await give(second, json)).status, (await give(second, json)).json().creditSat]).toEqual([201, 150])
  })

  test('C41: a refused deduction can be repeated with its key', async () => {
    const { id } = await server.newAccount({ creditSat: 0 })
    const json = { amountSat: -5, reason: 'Mistake' }
    expect((await give(id, json, 'again')).status).toBe(400)
    await give(id, { amountSat: 5, reason: 'x' })
    expect((await give(id, json, 'again')).json()).toMatchObject({ creditSat: 0 })
  })
})

describe('nodes', () => {
  test('are listed by account and state; a deleted one says until when it can be restored', async () => {
    const owner = await newOwner(server)
    const { node } = await owner.createReady()
    const { node: other } = await owner.create()
    expect((await get('/nodes?accountId=%00')).nodes).toEqual([])
    const list = async (query: string) => (await get(`/nodes?accountId=${owner.accountId}${query}`)).nodes
    const ids = async (query: string): Promise<string[]> => (await list(query)).map(({ id }: { id: string }) => id)
    expect(await ids('')).toEqual([node.id, other.id].sort())
    expect(await ids('&order=newest&limit=1')).toEqual([[node.id, other.id].sort()[1]])
    expect(await ids('&state=restorable')).toEqual([])
    await owner.send('DELETE', `/nodes/${node.id}?force=true`)
    const [deleted] = await eventually(async () => {
      const found = await list('&state=restorable')
      return found.length > 0 && found
    }, 'the node to be deleted')
    expect(deleted).toMatchObject({ id: node.id, isRestorable: true, purgesAt: deleted.deletedAt + 30 * 86_400 })
    expect(deleted.accountName).toBe((await get(`/accounts/${owner.accountId}`)).name)
    expect(await ids('&state=live')).toEqual([other.id])
    const sql = server.sql()
    // The node is restored together with its line in the activity log, or not at all.
    await sql`ALTER TABLE activity ADD CONSTRAINT unwritable CHECK (action <> 'node.undeleted') NOT VALID`
    expect((await server.operator('POST', `/nodes/${node.id}/undelete`)).status).toBe(500)
    expect(await ids('&state=live')).toEqual([other.id])
    await sql`ALTER TABLE activity DROP CONSTRAINT unwritable`
    expect((await server.operator('POST', `/nodes/${node.id}/undelete`)).status).toBe(200)
    expect(await ids('&state=live')).toEqual([node.id, other.id].sort())
    const [restored] = (await list('')).filter(({ id }: { id: string }) => id === node.id)
    expect(restored).toMatchObject({ isRestorable: false, purgesAt: null, deletedAt: null })
    await sql`UPDATE nodes SET status = 'failed', failure_message = 'It broke.', next_at = now() + interval '1 hour' WHERE id = ${node.id}`
    expect(await ids('&state=failed')).toContain(node.id)
    await sql`UPDATE nodes SET deleted_at = now() - interval '31 days', desired_state = 'deleted', purging_at = now() WHERE id = ${node.id}`
    expect(await ids('&state=restorable')).toEqual([])
  })
})
