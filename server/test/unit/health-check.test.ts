import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../../testing/eventually.ts'
import type { Address, NodeSpec, Observation } from '../../src/nodes/runtime.ts'
import { HealthCheck } from '../../src/runtimes/health-check.ts'

const LISTENER = `
  const server = require('node:net').createServer()
  const backlog = Number(process.argv[1])
  server.listen({ port: 0, host: '127.0.0.1', backlog }, () => console.log(server.address().port))`
/** More than the kernel accepts for a backlog of one. */
const CROWD = 8

/** A process that listens and is suspended. About as many connections as its backlog succeed, and none gets a response. */
async function stoppedProcess(backlog: number): Promise<Address> {
  const child = spawn(process.execPath, ['-e', LISTENER, String(backlog)], { env: {}, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [port] = await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  await eventually(() => / T /.test(readFileSync(`/proc/${child.pid}/stat`, 'utf8')), 'the process to be stopped')
  return { host: '127.0.0.1', port: Number(port) }
}

/** As if the network were down: no further connection to the process succeeds. */
async function outOfReach(): Promise<Address> {
  const address = await stoppedProcess(1)
  const crowd = Array.from({ length: CROWD }, () => connect(address.port, address.host))
  onTestFinished(() => {
    for (const socket of crowd) socket.destroy()
  })
  await once(crowd[0] ?? connect(address.port), 'connect')
  return address
}

const node = { id: 'node_1', nowMs: 0, history: { startedAtMs: null } } as unknown as NodeSpec
const passwordOf = async (): Promise<string> => 'password'

/** Six queries at once, because each takes until its timeout. */
async function observe(address: Address, isListening: boolean): Promise<string[]> {
  const health = new HealthCheck(passwordOf)
  const six: Observation[] = await Promise.all(Array.from({ length: 6 }, () => health.ask(node, address, isListening)))
  return six.map(({ observed }) => observed.phase)
}

test('a node that does not respond is hung after five queries; one that cannot be reached is not, if its port is known to be open', async () => {
  const [silent, away] = [await stoppedProcess(100), await outOfReach()]
  const becomesHung = ['starting', 'starting', 'starting', 'starting', 'hung', 'hung']
  const [listens, isSplit, isFull] = await Promise.all([observe(silent, true), observe(away, true), observe(away, false)])
  expect(listens).toEqual(becomesHung)
  expect(isSplit).toEqual(Array.from({ length: 6 }, () => 'unreachable'))
  // On one machine, the network cannot be the cause: too many connections wait for a process that does not accept them.
  expect(isFull).toEqual(becomesHung)
})
