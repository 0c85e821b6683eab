import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { type Answer, eventually, PROCESS, Server, startServer, temporaryDirectory } from '../support/server.ts'

/** A process with ROLE=reaper. No node has been deleted, so it needs no cluster: it would ask one only to remove a node. */

const KUBECONFIG = `
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {token: none}}]
`
let yard: Server
let reaper: Server

beforeAll(async () => {
  const kubeconfig = join(temporaryDirectory(), 'kubeconfig')
  writeFileSync(kubeconfig, KUBECONFIG)
  yard = await startServer({ command: PROCESS, store: 'embedded', env: { NODE_PRICE_SAT_PER_DAY: '0' } })
  const { MASTER_KEY, ...store } = yard.sharedStoreEnv
  reaper = new Server({
    env: { ...store, NODE_RUNTIME: 'kubernetes', ROLE: 'reaper', KUBECONFIG: kubeconfig, LOG_LEVEL: 'warn' },
  })
  await reaper.launch()
  await eventually(() => reaper.send('GET', '/healthz'), 'the reaper to listen')
})

const NOTED = ['content-type', 'allow', 'x-content-type-options', 'strict-transport-security']
const seen = ({ status, text, headers }: Answer) => [status, text, ...NOTED.map((name) => headers[name])]

test.each(['GET', 'HEAD'])('its health checks answer %s as those of the API do', async (method) => {
  for (const path of ['/healthz', '/readyz', '/readyz?from=kubelet']) {
    const answer = await reaper.send(method, path)
    expect(answer.status).toBe(200)
    expect(seen(answer)).toEqual(seen(await yard.send(method, path)))
  }
})

test('C3: every response has the request’s id, or a new one', async () => {
  for (const path of ['/healthz', '/nothing']) {
    const named = await reaper.send('GET', path, { headers: { 'x-request-id': 'kubelet-1' } })
    expect(named.headers['x-request-id']).toBe('kubelet-1')
    expect((await reaper.send('GET', path)).headers['x-request-id']).toMatch(/^req_/)
  }
})

test('C2: it serves nothing else, and says so as the API does', async () => {
  for (const [method, path] of [
    ['POST', '/healthz'],
    ['DELETE', '/readyz'],
    ['GET', '/v1/nothing'],
    ['GET', '/healthz/more'],
  ] as const)
    expect(seen(await reaper.send(method, path))).toEqual(seen(await yard.send(method, path)))
  for (const path of ['/', '/v1/nodes', '/metrics', '/docs', '/openapi.json'])
    expect((await reaper.send('GET', path, { headers: { host: 'any.example' } })).status).toBe(404)
})

test('while PostgreSQL is down it is alive but not ready, and it recovers without a restart', async () => {
  const { giveBack } = await yard.takeStoreAway()
  const answer = await reaper.send('GET', '/readyz')
  expect([answer.status, answer.json().error.code]).toEqual([503, 'service_unavailable'])
  expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/)
  expect((await reaper.send('GET', '/healthz')).status).toBe(200)
  giveBack()
  await eventually(async () => (await reaper.send('GET', '/readyz')).status === 200, 'PostgreSQL to be back')
})

test('a port that is in use ends its start, and the message names the variable', async () => {
  const second = await new Server({ env: { ...reaper.env, PORT: String(reaper.port) } }).launch()
  expect(await second.exited).toMatchObject({ code: 1 })
  expect(second.stderr).toMatch(/^PORT: \S+ is already in use/)
})

test('SIGTERM ends it', async () => {
  expect(await reaper.stop()).toEqual({ code: 0, signal: null })
  await expect(reaper.send('GET', '/healthz')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})
