import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { basic, FULL, startNetwork, type TestHub, type TestNode } from '../harness.ts'

/** A hub and two nodes that get what nobody should send them. */

export let hub: TestHub
export let node: TestNode
export let payee: TestNode
export const open: Socket[] = []

beforeAll(async () => {
  ;({ hub, payer: node, payee } = await startNetwork())
})

/** Whatever was done to them, the same processes still answer, and none of them has complained of an error of its own. */
afterEach(async () => {
  try {
    expect((await node.get('/getinfo')).status).toBe(200)
    expect((await node.state()).nodeId).toBe(node.nodeId)
    expect((await hub.get('/wallet')).status).toBe(200)
  } finally {
    const complaints = [node, payee, hub].map(({ daemon }) => daemon.stderr)
    const dead = [node, payee, hub].filter(({ daemon }) => daemon.child.exitCode !== null)
    // The next test is to judge its own hostility, not this one's.
    for (const daemon of [node.daemon, payee.daemon, hub.daemon]) daemon.stderr = ''
    for (const one of dead) await one.start()
    expect([...new Set(complaints.join('').split('\n'))]).toEqual([''])
    expect(dead).toHaveLength(0)
  }
})

afterAll(() => {
  for (const socket of open) socket.destroy()
})

export const AUTHORIZATION = `Authorization: ${basic(FULL)}`
export const FORM = 'application/x-www-form-urlencoded'

/** Sends these bytes as they are, and answers with all that comes back until the other side closes. */
export async function raw(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => undefined)
  socket.write(bytes)
  await new Promise((resolve) => socket.once('close', resolve))
  return Buffer.concat(chunks).toString('latin1')
}

export const statusOf = (text: string): number => Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0)
