import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { Boltyard, paymentIdOf } from '../sdk/src/index.ts'
import { paywall } from '../sdk/src/paywall/express.ts'
import { type Measure, median, quantile, timed } from './measure.ts'
import { killDaemons, Service } from './service.ts'

/** A paid request, and how much of it was the gateway's: from when it is asked until its answer is there. */
async function purchases(service: Service, nodeId: string, quick: boolean): Promise<Measure[]> {
  let roundTripMs = 0
  const timedFetch: typeof fetch = async (...request) => {
    const started = performance.now()
    const response = await fetch(...request)
    const body = await response.arrayBuffer()
    roundTripMs += performance.now() - started
    return new Response(body, response)
  }
  const client = new Boltyard({ apiKey: service.key, baseUrl: `${service.url}/v1`, fetch: timedFetch })
  const operator = readFileSync(join(service.dataDir, 'operator.token'), 'utf8').trim()
  const app = express()
  const handler: express.RequestHandler = (_request, response) => void response.json({ joke: 'bench' })
  app.get('/free', handler)
  app.get('/paid', paywall({ client, nodeId, amountSat: 10 }), handler)
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const shop = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const get = async (path: string, authorization?: string): Promise<Response> => {
    const response = await fetch(`${shop}${path}`, authorization === undefined ? {} : { headers: { authorization } })
    await response.arrayBuffer()
    return response
  }
  const paid = async (challenge: string): Promise<string> => {
    const echoed = Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]))
    const { methodDetails } = JSON.parse(Buffer.from(String(echoed.request), 'base64url').toString())
    const { body } = await service.call('POST', '/operator/v1/sandbox/pay', { invoice: methodDetails.invoice }, operator)
    const token = JSON.stringify({ challenge: echoed, payload: { preimage: body.preimage } })
    return `Payment ${Buffer.from(token).toString('base64url')}`
  }

  const [free, whole, rest]: [number[], number[], number[]] = [[], [], []]
  const rounds = quick ? 40 : 1_000
  for (let round = -30; round < rounds; round++) {
    const credential = await paid((await get('/paid')).headers.get('www-authenticate') ?? '')
    // Nodes tell of a payment after they have taken it; waiting for that is none of the paywall's doing.
    while ((await client.payments.get(paymentIdOf(credential) ?? '')).settledAt === null) await new Promise(setImmediate)
    const freeMs = await timed(() => get('/free'))
    roundTripMs = 0
    const wholeMs = await timed(async () => {
      const { status } = await get('/paid', credential)
      if (status !== 200) throw new Error(`paid: ${status}`)
    })
    if (round < 0) continue
    free.push(freeMs)
    whole.push(wholeMs)
    rest.push(wholeMs - roundTripMs)
  }
  server.close()
  server.closeAllConnections()
  const own = median(rest) - median(free)
  return [
    { name: 'a request for nothing (Express): median', value: median(free), unit: 'ms' },
    { name: 'a paid request through the paywall: median', value: median(whole), unit: 'ms' },
    { name: '  p99', value: quantile(whole, 0.99), unit: 'ms' },
    { name: '  over the first and the gateway’s part', value: own, unit: 'ms', target: { op: '≤', value: 1 } },
  ]
}

export async function benchPaywall(quick: boolean): Promise<Measure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'boltyard-bench-'))
  const service = new Service(dataDir)
  try {
    await service.start()
    const nodeId = await service.createUntilReady()
    return await purchases(service, nodeId, quick)
  } finally {
    await service.stop()
    killDaemons(dataDir)
    rmSync(dataDir, { recursive: true, force: true })
  }
}
