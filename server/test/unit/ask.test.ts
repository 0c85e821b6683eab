import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { ask } from '../../src/lightning/phoenixd/client.ts'

/** Counts its answers in shared memory, which the test can read while it blocks its own event loop. */
const NODE = `
  const { parentPort, workerData: answered } = require('node:worker_threads')
  const server = require('node:http').createServer((request, response) => {
    response.on('finish', () => { Atomics.add(answered, 0, 1); Atomics.notify(answered, 0) })
    response.end('well')
  })
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`

test('reliability 10: an answer that arrived in time counts, even if this process was too busy to read it', async () => {
  const answered = new Int32Array(new SharedArrayBuffer(4))
  const node = new Worker(NODE, { eval: true, workerData: answered })
  onTestFinished(async () => void (await node.terminate()))
  const [port] = await once(node, 'message')
  const look = (timeoutMs: number) => ask({ host: '127.0.0.1', port }, 'password', { path: '/' }, timeoutMs)
  await look(60_000)
  // The node counts an answer only after sending it, so the count may still be 0.
  Atomics.wait(answered, 0, 0, 60_000)
  const timeoutMs = 300
  const reply = look(timeoutMs)
  // Lets the event loop send the request, on the connection that was kept.
  await turn()
  // Blocks the event loop until the answer has been sent, and then until the timeout has passed.
  Atomics.wait(answered, 0, 1, 60_000)
  Atomics.wait(answered, 0, 2, timeoutMs + 100)
  expect(await reply).toEqual({ status: 200, text: 'well' })
})
