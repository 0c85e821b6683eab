import { beforeAll, expect, test } from 'vitest'
import { eventually, PROCESS, type Server, startServer } from '../../server/test/support/server.ts'
import { openReceiver, type Receiver, verified } from '../../testing/receiver.ts'
import { Customer, onTerminal, ROOMY, run } from './harness.ts'

/** The events of a real payment, from the sandbox to a receiver on this machine. */

let server: Server
let ada: Customer
let nodeId: string
let receiver: Receiver

beforeAll(async () => {
  server = await startServer({ env: ROOMY, command: PROCESS })
  ada = await Customer.of(server, ['nodes:write', 'gateway:write', 'events:read'])
  nodeId = (await ada.gets(['nodes', 'create', '--name', 'shop', '--wait'])).node.id
  receiver = await openReceiver()
})

async function purchase(description: string): Promise<string> {
  const asked = ['payments', 'create', '--node', nodeId, '--amount-sat', '21', '--description', description]
  const challenge = await ada.run(asked)
  const paid = await ada.run(['sandbox', 'pay', '-'], { input: challenge.stdout, env: { DATA_DIR: server.dataDir } })
  return (await ada.gets(['payments', 'redeem'], { input: paid.stdout })).id
}

onTerminal('listen', () => {
  test('C54: payments made in the sandbox arrive, also across a restart of the service, and standardwebhooks verifies them', async () => {
    const { stdout: secret } = await run(['listen', '--print-secret'])
    const terminal = ada.terminal(['listen', '--forward-to', receiver.url, '--types', 'payment.*'])
    await terminal.shows(/Forwarding events to /)
    const first = await purchase('A joke')
    await terminal.shows(/payment\.redeemed {2}evt_\w+ {2}200/)
    await server.restart('SIGKILL')
    const second = await purchase('Another joke')
    await terminal.shows(/(payment\.redeemed {2}evt_\w+ {2}200.*){2}/s)
    terminal.type('\u0003')
    expect(await terminal.exited).toBe(0)

    const events = receiver.received.map((request) => verified(secret.trim(), request))
    const expected = [first, second].flatMap((id) =>
      ['payment.settled', 'payment.paid', 'payment.redeemed'].map((type) => `${type} ${id}`),
    )
    expect(events.map(({ type, data }) => `${type} ${data.paymentId}`)).toEqual(expected)
    expect(events[0]?.data).toMatchObject({ nodeId, amountSat: 21, description: 'A joke' })
  })
})

test('C53: events lists the purchase, and continues after its cursor', async () => {
  const { nextCursor } = await eventually(async () => {
    const page = await ada.gets(['events', '--types', 'node.ready', '--node', 'shop'])
    return page.events.length === 1 && page
  }, 'the node’s event')
  const id = await purchase('A third joke')
  const { events } = await eventually(async () => {
    const page = await ada.gets(['events', '--types', 'payment.redeemed', '--after', nextCursor, '--limit', '200'])
    return page.events.some(({ data }: any) => data.paymentId === id) && page
  }, 'the purchase')
  expect(events.at(-1)).toMatchObject({ type: 'payment.redeemed', data: { paymentId: id, amountSat: 21 } })
  const forged = await ada.run(['events', '--after', 'forged'])
  expect([forged.code, forged.error().status]).toEqual([2, 400])
})

test('a key without events:read gets an error that says so', async () => {
  const other = await Customer.of(server, ['gateway:write'])
  for (const args of [['events'], ['events', '--follow'], ['listen', '--forward-to', receiver.url]]) {
    const { code, error } = await other.run(args)
    expect([code, error().message]).toEqual([4, expect.stringContaining('This API key lacks the scope events:read.')])
  }
})
