import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { basic, FULL, startNetwork, type TestHub, type TestNode } from '../harness.ts'

/** A hub and two nodes that receive hostile input. */

export let hub: TestHub
export let node: TestNode
export let payee: TestNode
export const open: Socket[] = []

beforeAll(async () => {
  ;({ hub, payer: node, payee } = await startNetwork())
})

/** Checks that the same processes still respond and have logged no internal error. */
afterEach(async () => {
  try {
    expect((await node.get('/getinfo')).status).toBe(200)
    expect((await node.state()).nodeId).toBe(node.nodeId)
    expect((await hub.get('/wallet')).status).toBe(200)
  } finally {
    const complaints = [node, payee, hub].map(({ daemon }) => daemon.stderr)
    const dead = [node, payee, hub].filter(({ daemon }) => daemon.child.exitCode !== null)
    // The next test must see only its own errors.
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

/** Sends these bytes unchanged and returns everything received until the other side closes. */
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
