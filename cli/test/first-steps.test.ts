import { beforeAll, describe, expect, test } from 'vitest'
import { type Server, startServer } from '../../server/test/support/server.ts'
import { Customer, inHome, ROOMY, run } from './harness.ts'

/** The situation of a new user: a service that was just started on this machine, and no API key configured. */
let server: Server
let env: Record<string, string>

beforeAll(async () => {
  server = await startServer({ store: 'embedded', env: ROOMY })
  env = { SERVICE_BASE_URL: `${server.url}/v1`, DATA_DIR: server.dataDir }
})

test('a first paid request takes three commands: a node, a challenge, a redeemed payment', async () => {
  const created = await run(['nodes', 'create', '--name', 'shop', '--credentials-file', inHome('shop.json'), '--wait'], { env })
  expect([created.code, created.json().node.status]).toEqual([0, 'ready'])
  const asked = ['payments', 'create', '--node', 'shop', '--amount-sat', '100', '--description', 'Weather report']
  const challenge = (await run(asked, { env })).stdout
  const paid = (await run(['sandbox', 'pay', '-'], { env, input: challenge })).stdout
  const redeemed = await run(['payments', 'redeem', '--expect-node', 'shop'], { env, input: paid })
  expect(redeemed.json()).toMatchObject({ id: JSON.parse(challenge).id, status: 'paid', amountSat: 100 })
})

describe('the key from the first start', () => {
  test('is used only for a service on this machine', async () => {
    const elsewhere = await run(['key'], { env: { ...env, SERVICE_BASE_URL: 'http://127.0.0.1.example/v1' } })
    expect([elsewhere.code, elsewhere.error().code]).toEqual([4, 'no_api_key'])
    const here = await run(['key'], { env })
    expect([here.code, here.json().accountId]).toEqual([0, server.firstRun.accountId])
  })

  test('is overridden by an explicit key', async () => {
    const ada = await Customer.of(server)
    const chosen = await run(['key'], { env: { ...env, SERVICE_API_KEY: ada.env.SERVICE_API_KEY } })
    expect(chosen.json().accountId).not.toBe(server.firstRun.accountId)
  })

  test('if it cannot be read, the message names its file', async () => {
    const { code, error } = await run(['key'], { env: { ...env, DATA_DIR: inHome('nothing') } })
    expect([code, error().next]).toEqual([4, expect.stringContaining(inHome('nothing/first-run.json'))])
  })
})

describe('a node’s name', () => {
  test('works instead of its id; an unknown name is 5, an ambiguous one is 2 and lists both ids', async () => {
    const ada = await Customer.of(server)
    const { node: first } = await ada.gets(['nodes', 'create', '--name', 'till'])
    expect(await ada.gets(['nodes', 'get', 'till'])).toMatchObject({ id: first.id })
    const { node: second } = await ada.gets(['nodes', 'create', '--name', 'till'])
    const both = await ada.run(['nodes', 'delete', 'till', '--yes'])
    expect([both.code, both.error().next]).toEqual([2, `${first.id} ${second.id}`])
    const none = await ada.run(['nodes', 'get', 'Till'])
    expect([none.code, none.error().code]).toEqual([5, 'node_not_found'])
  })
})
