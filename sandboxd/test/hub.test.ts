import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { Daemon, eventually, readText, startNetwork, type TestHub, TestNode, temporaryDirectory } from './harness.ts'

let hub: TestHub
let payer: TestNode
let payee: TestNode

beforeAll(async () => {
  ;({ hub, payer, payee } = await startNetwork())
})

describe('the hub’s wallet and faucet', () => {
  test('pays an invoice like a customer and returns the hash and preimage', async () => {
    const invoice = await payee.invoice({ amountSat: 250 })
    const answer = await hub.post('/pay', { invoice: invoice.serialized })
    const { preimage } = await payee.incoming(invoice.paymentHash)
    expect([answer.status, answer.json()]).toEqual([200, { paymentHash: invoice.paymentHash, preimage }])
  })

  test('repeating an invoice returns the same result without a second payment; ten concurrent requests pay once', async () => {
    const invoice = await payee.invoice({ amountSat: 250 })
    const before = (await payee.state()).balanceMsat
    const answers = await Promise.all(Array.from({ length: 10 }, () => hub.post('/pay', { invoice: invoice.serialized })))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect((await hub.post('/pay', { invoice: invoice.serialized })).text).toBe(answers[0]?.text)
    expect((await payee.state()).balanceMsat).toBe(before + 250_000)
  })

  test('security 23: a named payer gets the result again, even after a restart of the hub; no one else gets the preimage', async () => {
    const invoice = await payee.invoice({ amountSat: 250 })
    const before = (await payee.state()).balanceMsat
    const payAs = (payer?: string) => hub.post('/pay', { invoice: invoice.serialized, ...(payer === undefined ? {} : { payer }) })
    const refused = [409, { error: 'this invoice has already been paid' }]
    const first = await payAs('ann')
    expect(first.status).toBe(200)
    for (let round = 0; round < 3; round++) {
      expect((await payAs('ann')).text).toBe(first.text)
      for (const other of ['eve', undefined]) {
        const answer = await payAs(other)
        expect([answer.status, answer.json()]).toEqual(refused)
      }
      await hub.restart()
    }
    expect((await payee.state()).balanceMsat).toBe(before + 250_000)
  })

  test('security 23: no one else gets the preimage by asking while the invoice is being paid, either', async () => {
    const invoice = await payee.invoice({ amountSat: 250 })
    await payee.control('answers', { answers: 'hang' })
    const first = hub.post('/pay', { invoice: invoice.serialized, payer: 'ann' })
    await eventually(async () => (await hub.get('/wallet')).json().pending === 1, 'the payment to be under way')
    const other = await hub.post('/pay', { invoice: invoice.serialized, payer: 'eve' })
    expect([other.status, other.json()]).toEqual([409, { error: 'another payment is in progress for that invoice' }])
    await payee.control('answers', { answers: 'normal' })
    expect((await first).json()).toHaveProperty('preimage')
  })

  test('an invoice without an amount needs one', async () => {
    const { serialized } = await payee.invoice()
    expect((await hub.post('/pay', { invoice: serialized })).status).toBe(400)
    expect((await hub.post('/pay', { invoice: serialized, amountSat: 9 })).status).toBe(200)
  })

  test('a refusal by the recipient is 409 with the reason, and nothing is paid', async () => {
    const invoice = await payee.invoice({ amountSat: 250 })
    const { paidMsat } = (await hub.get('/wallet')).json()
    const answer = await hub.post('/pay', { invoice: invoice.serialized, amountSat: 100 })
    expect([answer.status, answer.json()]).toEqual([409, { error: 'recipient node rejected the payment' }])
    expect((await hub.get('/wallet')).json().paidMsat).toBe(paidMsat)
  })

  test('an invoice of another network is refused, to rule out real money', async () => {
    const mainnet =
      'lnbc20m1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqhp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqs9qrsgq7ea976txfraylvgzuxs8kgcw23ezlrszfnh8r6qtfpr6cxga50aj6txm9rxrydzd06dfeawfk6swupvz4erwnyutnjq7x39ymw6j38gp7ynn44'
    const answer = await hub.post('/pay', { invoice: mainnet })
    expect([answer.status, answer.json().error]).toEqual([400, 'invoice is not for the sandbox (lnbcrt)'])
  })

  test('funds a node that has joined, and no other', async () => {
    const before = (await payee.state()).balanceMsat
    const answer = await hub.post(`/nodes/${payee.nodeId}/fund`, { amountSat: 5 })
    expect(answer.json()).toEqual({ balanceSat: Math.floor(before / 1000) + 5 })
    expect((await hub.post(`/nodes/02${'0'.repeat(64)}/fund`, { amountSat: 5 })).status).toBe(404)
  })

  test('funding a stopped node is a 502 and grants nothing', async () => {
    const sleeper = await new TestNode({ hub }).start()
    await sleeper.daemon.kill('SIGTERM')
    const { grantedMsat } = (await hub.get('/wallet')).json()
    expect((await hub.post(`/nodes/${sleeper.nodeId}/fund`, { amountSat: 5 })).status).toBe(502)
    expect((await hub.get('/wallet')).json()).toMatchObject({ grantedMsat, pending: 0 })
    await sleeper.start()
    expect((await sleeper.state()).balanceMsat).toBe(0)
  })

  test('funding that a node does not confirm is a 502 at once; the hub keeps trying and grants it once', async () => {
    const node = await oddNode()
    const { grantedMsat } = (await hub.get('/wallet')).json()

    const answer = await hub.post(`/nodes/${node.nodeId}/fund`, { amountSat: 5 })
    expect([answer.status, answer.json().error]).toEqual([502, 'the node did not confirm the grant; the hub keeps trying'])
    expect((await hub.get('/wallet')).json()).toMatchObject({ grantedMsat, pending: 1 })
    node.answer = { status: 200, body: { balanceSat: 5 } }
    await eventually(async () => (await hub.get('/wallet')).json().pending === 0, 'the grant to be confirmed')
    expect((await hub.get('/wallet')).json().grantedMsat).toBe(grantedMsat + 5_000)
    expect(new Set(node.asked.map(({ fundId }) => fundId)).size).toBe(1)
    node.close()
  })

  test('unconfirmed funding ends only when the node says that it refuses it for good; until then, the hub keeps trying', async () => {
    const node = await oddNode()
    const { grantedMsat } = (await hub.get('/wallet')).json()
    expect((await hub.post(`/nodes/${node.nodeId}/fund`, { amountSat: 5 })).status).toBe(502)
    // As from a node of an older version, which does not record the refusal.
    node.answer = { status: 409, body: { error: 'too much' } }
    const enough = node.asked.length + 3
    await eventually(() => node.asked.length >= enough, 'more attempts')
    expect((await hub.get('/wallet')).json()).toMatchObject({ grantedMsat, pending: 1 })

    node.answer = { status: 200, body: { refused: 'too much' } }
    await eventually(async () => (await hub.get('/wallet')).json().pending === 0, 'the grant to end')
    expect(node.asked.map(({ again }) => again)).toEqual(node.asked.map((_, place) => place > 0))
    await hub.restart()
    expect((await hub.get('/wallet')).json()).toMatchObject({ grantedMsat, pending: 0 })
    node.close()
  })
})

/** Registers a node that closes each connection without a response until it has an answer. */
async function oddNode() {
  const asked: { fundId: string; again: boolean }[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    request.on('end', () => {
      asked.push(JSON.parse(text))
      if (!node.answer) return void request.socket.destroy()
      response.writeHead(node.answer.status).end(JSON.stringify(node.answer.body))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const node = {
    nodeId: `02${randomBytes(32).toString('hex')}`,
    asked,
    answer: undefined as { status: number; body: object } | undefined,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
  const { port: controlPort } = server.address() as AddressInfo
  await hub.post('/register', { nodeId: node.nodeId, controlPort, controlToken: 'x' }, hub.nodeToken)
  return node
}

describe('the hub’s two tokens', () => {
  test('a node’s token can join and relay, and nothing else', async () => {
    for (const path of ['/pay', `/nodes/${payee.nodeId}/fund`, `/nodes/${payee.nodeId}/crash`]) {
      expect((await hub.post(path, {}, hub.nodeToken)).status).toBe(401)
    }
    expect((await hub.get('/nodes', hub.nodeToken)).status).toBe(401)
  })

  test('the control token cannot join', async () => {
    expect((await hub.post('/register', { nodeId: payee.nodeId, controlPort: 1, controlToken: 'x' })).status).toBe(401)
  })

  test('the first start generates both tokens, and the line that a node needs, in files that only the owner can read', async () => {
    const dataDir = join(temporaryDirectory(), 'hub')
    const daemon = new Daemon({ args: ['hub', `--datadir=${dataDir}`, '--http-bind-port=0'] })
    const [, port] = await daemon.printed(/listening on http:\/\/127\.0\.0\.1:(\d+)/)
    const conf = readText(join(dataDir, 'hub.conf'))
    const [, nodeToken] = /^node-token=([0-9a-f]{64})$/m.exec(conf) ?? []
    expect(conf).toMatch(/^control-token=[0-9a-f]{64}$/m)
    expect(readText(join(dataDir, 'node.conf'))).toBe(`\nsandbox-hub=${nodeToken}@127.0.0.1:${port}\n`)
    for (const file of ['hub.conf', 'node.conf', 'hub.db']) expect(statSync(join(dataDir, file)).mode & 0o777).toBe(0o600)
    expect(daemon.stdout).not.toContain(nodeToken)
    const second = new Daemon({ args: ['hub', `--datadir=${dataDir}`, '--http-bind-port=0'] })
    expect((await second.exited).code).toBe(75)
    expect((await daemon.kill('SIGTERM')).code).toBe(0)
  })
})

describe('while the hub is down', () => {
  test('payments fail as if the recipient were offline, and everything else works; payments work again when the hub is back', async () => {
    const invoice = await payee.invoice({ amountSat: 10 })
    await hub.daemon.kill()
    expect((await payer.pay(invoice.serialized)).reason).toBe('recipient node is offline or unreachable')
    const made = await payee.invoice({ amountSat: 11 })
    expect((await payee.incoming(made.paymentHash)).isPaid).toBe(false)
    expect((await payer.get('/getinfo')).json().channels[0].state).toBe('Normal')
    expect((await payer.balance()).balanceSat).toBeGreaterThan(0)
    await hub.start()
    expect(await payer.pay(invoice.serialized)).toHaveProperty('paymentPreimage')
  })

  test('a restarted node is found at its new address', async () => {
    await payee.restart('SIGTERM')
    expect(await payer.pay((await payee.invoice({ amountSat: 10 })).serialized)).toHaveProperty('paymentPreimage')
    const nodes = (await hub.get('/nodes')).json().nodes
    expect(nodes).toContainEqual({ nodeId: payee.nodeId, host: '127.0.0.1', port: payee.controlPort })
  })
})

describe('faults that the operator sets through the hub', () => {
  const fault = (node: TestNode, name: string) => hub.post(`/nodes/${node.nodeId}/fault`, { fault: name })

  test('crash: the node dies by SIGKILL and loses nothing', async () => {
    const node = await new TestNode({ hub }).start()
    const invoice = await node.invoice({ amountSat: 1 })
    expect((await fault(node, 'crash')).status).toBe(200)
    expect((await node.daemon.exited).signal).toBe('SIGKILL')
    await node.start()
    expect((await node.incoming(invoice.paymentHash)).isPaid).toBe(false)
  })

  test('hang: responses wait until the fault ends; controls keep working', async () => {
    const node = await new TestNode({ hub }).start()
    await fault(node, 'hang')
    let answered = false
    const waiting = node.get('/getinfo').finally(() => {
      answered = true
    })
    expect((await node.state()).answers).toBe('hang')
    expect(answered).toBe(false)
    await fault(node, 'none')
    expect((await waiting).status).toBe(200)
  })

  test('a payment to a node that hangs stays pending and arrives once the hang is over', async () => {
    const node = await new TestNode({ hub }).start()
    const invoice = await node.invoice({ amountSat: 10 })
    await fault(node, 'hang')
    const paying = payer.pay(invoice.serialized)
    await eventually(async () => (await payer.get(`/payments/outgoingbyhash/${invoice.paymentHash}`)).json(), 'a pending row')
    await fault(node, 'none')
    expect(await paying).toHaveProperty('paymentPreimage')
  })

  test('slow: responses take ten seconds', async () => {
    const node = await new TestNode({ hub }).start()
    await fault(node, 'slow')
    const started = performance.now()
    expect((await node.get('/getinfo')).status).toBe(200)
    expect(performance.now() - started).toBeGreaterThan(9_900)
  })

  test('peer_down: the node cannot pay or be paid, shows balance 0 and still creates invoices; the fault "none" ends this', async () => {
    const node = await new TestNode({ hub }).start()
    await hub.fund(node, 5000)
    await fault(node, 'peer_down')
    const invoice = await node.invoice({ amountSat: 10 })
    const forPayee = await payee.invoice({ amountSat: 10 })
    expect((await node.pay(forPayee.serialized)).reason).toBe('channel is not connected yet, please retry when connected')
    expect((await payer.pay(invoice.serialized)).reason).toBe('recipient node is offline or unreachable')
    expect(await node.balance()).toEqual({ balanceSat: 0, feeCreditSat: 0 })
    expect(node.daemon.stdout).toContain('disconnected from lightning peer')
    await fault(node, 'none')
    expect(await node.balance()).toEqual({ balanceSat: 5000, feeCreditSat: 0 })
    expect(await payer.pay(invoice.serialized)).toHaveProperty('paymentPreimage')
  })

  test('an unknown fault is a 400 that lists the valid ones', async () => {
    const answer = await fault(payee, 'earthquake')
    expect([answer.status, answer.json().error]).toEqual([400, 'fault must be one of none, crash, hang, peer_down, slow'])
  })
})

test('the clock only goes forward, also across a restart', async () => {
  const node = await new TestNode({ hub }).start()
  expect((await node.control('clock', { advanceSeconds: -1 })).status).toBe(400)
  await node.control('clock', { advanceSeconds: 3600 })
  await node.restart()
  const beforeMs = Date.now()
  expect((await node.state()).nowMs).toBeGreaterThanOrEqual(beforeMs + 3_600_000)
})
