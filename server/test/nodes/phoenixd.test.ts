import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Sql } from '../../src/store/db.ts'
import { daemonsIn, program, versions, Yard } from '../support/crash.ts'
import { endOperation, looks, wantedFor } from '../support/deadlines.ts'
import { eventually, PROCESS, type ServerSetup, temporaryDirectory } from '../support/server.ts'

/** Simulates a phoenixd that does not work, with executables that each fail in one way. */

/** So long that it passes only when a test moves the times in the database. */
const DEADLINE_SECONDS = 3_600

/** What phoenixd prints before it has reached its peer. */
const FIRST_LINES = ['datadir: x', 'chain: Mainnet', 'nodeid: 02aa', 'connecting to lightning peer...']
  .map((line) => `echo "2026-01-01 00:00:00 ${line}"`)
  .join('\n')

async function phoenixd(script: string, { env, ...setup }: ServerSetup = {}): Promise<{ yard: Yard; id: string }> {
  const path = program(temporaryDirectory(), 'phoenixd', `${FIRST_LINES}\n${script}`)
  const settings = {
    NODE_SOFTWARE: 'phoenixd',
    PROVISION_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
    OPERATOR_TOKEN: 'x'.repeat(32),
  }
  const yard = await new Yard({ ...setup, env: { ...settings, ...versions({ '0.8.0': path }), ...env } }).start()
  return { yard, id: (await yard.create()).node.id }
}

/** A node written in JavaScript, because a shell script cannot serve HTTP. */
function serving(handler: string): string {
  const path = join(temporaryDirectory(), 'server.cjs')
  const port = "Number(/--http-bind-port=([0-9]+)/.exec(process.argv.join(' '))[1])"
  writeFileSync(path, `require('node:http').createServer(${handler}).listen(${port}, '127.0.0.1')`, { mode: 0o644 })
  return `exec '${process.execPath}' '${path}' "$@"`
}

const logOf = (yard: Yard, id: string): string => readFileSync(join(yard.state(id), 'daemon.log'), 'utf8')
const startsOf = (yard: Yard, id: string): number => logOf(yard, id).split('datadir: x').length - 1

describe('without a peer', () => {
  test('provisioning, then failed with the reason; its process is left alone', async () => {
    const { yard, id } = await phoenixd('exec sleep 10000', { command: PROCESS })
    const sql = yard.sql()
    const waitsForPeer = sql`phase = 'waiting_for_peer'`
    const daemon = await eventually(() => yard.daemon(id), 'the process')
    expect((await yard.view(id)).status).toBe('provisioning')
    await wantedFor(sql, id, DEADLINE_SECONDS, waitsForPeer)
    const view = await yard.becomes(id, 'failed')
    expect(view.failureMessage).toMatch(/has not reached its Lightning peer yet.*automatically/)
    // After several checks, the process is still the same, and no other was ever started.
    await looks(sql, id, 4)
    expect(yard.daemon(id)).toEqual(daemon)
    expect(startsOf(yard, id)).toBe(1)
    expect((await yard.view(id)).status).toBe('failed')

    // A restart of the service does not replace the process either.
    await yard.restart('SIGKILL')
    await looks(sql, id, 1)
    expect(yard.daemon(id)).toEqual(daemon)

    // Start waits for the process and does not restart it.
    const starting = yard.v1('POST', `/${id}/start`)
    await endOperation(sql, id, waitsForPeer)
    const start = await starting
    expect([start.status, start.json().error.code]).toEqual([502, 'payment_service_unavailable'])
    expect(start.json().error.message).toMatch(/peer/)
    expect(yard.daemon(id)).toEqual(daemon)

    await yard.expectOk(yard.v1('POST', `/${id}/stop`))
    expect((await yard.view(id)).status).toBe('stopped')
    expect(yard.daemon(id)).toBeUndefined()
  })
})

describe('a phoenixd that does not work', () => {
  /** The last exit is recorded, and the next start has not begun. */
  const isDown = (sql: Sql) =>
    sql`lease_until IS NULL AND history->>'startedAtMs' IS NULL AND jsonb_array_length(history->'exitsMs') > 0`

  test.each<[string, string, RegExp]>([
    ['exits with 0 at once', 'echo "2026-01-01 00:00:00 shutting down..."; exit 0', /exited unexpectedly.*shutting down/],
    ['exits with 1 at once', 'echo "cannot open the database"; exit 1', /exited unexpectedly.*cannot open the database/],
    ['says nothing and dies', 'exec > /dev/null; kill -9 $$', /exited unexpectedly/],
  ])('%s: failed, with an actionable message', async (_name, script, message) => {
    const beganAt = performance.now()
    const { yard, id } = await phoenixd(script)
    const sql = yard.sql()
    await wantedFor(sql, id, DEADLINE_SECONDS, isDown(sql))
    const view = await yard.becomes(id, 'failed')
    expect(view.failureMessage).toMatch(message)
    expect(daemonsIn(yard.dataDir).length).toBeLessThanOrEqual(1)
    // Retried with growing delays: 1, 2, 4 … s.
    const starts = startsOf(yard, id)
    expect(performance.now() - beganAt).toBeGreaterThan(1_000 * (2 ** (starts - 1) - 1))
    await yard.expectOk(yard.v1('DELETE', `/${id}`))
    await eventually(() => yard.daemon(id) === undefined, 'it to be gone')
  })

  test('takes connections and never answers: failed, with an actionable message', async () => {
    const { yard, id } = await phoenixd(serving("() => console.log('asked')"))
    // Before it listens, the node looks as if it were waiting for its peer.
    await eventually(() => logOf(yard, id).includes('asked'), 'the first query')
    const sql = yard.sql()
    await wantedFor(sql, id, DEADLINE_SECONDS, sql`true`)
    const view = await yard.becomes(id, 'failed')
    expect(view.failureMessage).toMatch(/did not respond in time.*stop the node and start it again/)
    expect(daemonsIn(yard.dataDir).length).toBeLessThanOrEqual(1)
    await yard.expectOk(yard.v1('DELETE', `/${id}`))
    await eventually(() => yard.daemon(id) === undefined, 'it to be gone')
  })

  test('responds as a different node: failed, and it is stopped', async () => {
    const info = JSON.stringify({ nodeId: '02'.padEnd(66, 'f'), version: '0.8.0', channels: [] })
    const { yard, id } = await phoenixd(serving(`(_, response) => response.end('${info}')`))
    const view = await yard.becomes(id, 'failed')
    expect(view.failureMessage).toMatch(/identity of a different node/)
    await eventually(() => yard.daemon(id) === undefined, 'it to be stopped')
  })

  test('is missing: failed, with that reason', async () => {
    const settings = { NODE_SOFTWARE: 'phoenixd', OPERATOR_TOKEN: 'x'.repeat(32) }
    const yard = await new Yard({ env: { ...settings, ...versions({ '0.8.0': '/nonexistent/phoenixd' }) } }).start()
    const { node } = await yard.create()
    const sql = yard.sql()
    await wantedFor(sql, node.id, DEADLINE_SECONDS, isDown(sql))
    expect((await yard.becomes(node.id, 'failed')).failureMessage).toMatch(/\/nonexistent\/phoenixd/)
  })
})

test.each([
  ['mainnet', undefined],
  ['testnet', '--chain=testnet'],
])('%s: its arguments', async (chain, argument) => {
  const { yard, id } = await phoenixd('echo "arguments: $*"; exec sleep 10000', { env: { NODE_CHAIN: chain } })
  const line = await eventually(() => /^arguments: (.*)$/m.exec(logOf(yard, id))?.[1], 'the arguments')
  const args = line.split(' ')
  expect(args.filter((one) => one.startsWith('--chain'))).toEqual(argument ? [argument] : [])
  expect(args).toEqual(expect.arrayContaining(['--agree-to-terms-of-service', '--http-bind-ip=127.0.0.1']))
  const conf = yard.conf(id)
  expect(conf).not.toMatch(/sandbox|chain/)
  expect(conf.split('\n').map((one) => one.split('=')[0])).toEqual([
    'http-password',
    'http-password-limited-access',
    'webhook-secret',
    'auto-liquidity',
    '',
  ])
  // Without a hub, there is no play money.
  expect((await yard.operator('POST', `/sandbox/nodes/${id}/fund`, { json: { amountSat: 1 } })).status).toBe(404)
})
