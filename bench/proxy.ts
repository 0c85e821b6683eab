import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { offerIn } from '../protocol/src/offers.ts'
import type { Service } from '../testing/service.ts'
import { ask, program } from './gateway.ts'
import type { LoadResult } from './load.ts'
import { cpuSeconds, type Measure } from './measure.ts'

const CALLERS = 16
const WARM_UP = 4_000
const ROUNDS = 7

/** What the proxy costs per repeated L402 request, compared with a bare proxy for the same client, requests and upstream. */
export async function benchProxy(service: Service, nodeId: string, quick: boolean): Promise<Measure[]> {
  const started: ChildProcess[] = []
  const start = async (env: Record<string, string>): Promise<{ child: ChildProcess; port: number }> => {
    const child = program('proxy-program.mjs', env)
    started.push(child)
    return { child, port: await new Promise<number>((resolve) => child.once('message', (value) => resolve(value as number))) }
  }
  const loader = program('load.ts')
  started.push(loader)
  try {
    const { port } = await start({ ROLE: 'upstream' })
    const env = {
      UPSTREAM_PORT: String(port),
      SERVICE_API_KEY: service.key,
      SERVICE_BASE_URL: `${service.url}/v1`,
      NODE_ID: nodeId,
    }
    const [bare, ours] = [await start({ ...env, ROLE: 'bare' }), await start({ ...env, ROLE: 'proxy' })]
    const operator = readFileSync(join(service.dataDir, 'operator.token'), 'utf8').trim()
    const unpaid = await fetch(`http://127.0.0.1:${ours.port}/articles/1`)
    const offer = offerIn(unpaid.headers.get('www-authenticate') ?? '')
    const { body } = await service.call('POST', '/operator/v1/sandbox/pay', { invoice: offer.invoiceText }, operator)
    const authorization = `Authorization: ${offer.credentialFor(body.preimage)}`
    const requestOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}\r\n\r\n`
    const count = quick ? 8_000 : 20_000
    const measured = async (to: { child: ChildProcess; port: number }, path: string): Promise<number> => {
      const load = async (requests: number): Promise<void> => {
        const wanted = { port: to.port, callers: CALLERS, requests: Array<string>(requests).fill(requestOf(path)) }
        const { statuses } = await ask<LoadResult>(loader, wanted)
        if (Object.keys(statuses).join() !== '200') throw new Error(`expected 200: ${JSON.stringify(statuses)}`)
      }
      await load(WARM_UP)
      const before = cpuSeconds(to.child.pid ?? 0)
      await load(count)
      return ((cpuSeconds(to.child.pid ?? 0) - before) * 1000) / count
    }
    // Other load on the machine makes every instruction slower and none faster, so the lowest of several rounds counts.
    const rounds: { bare: number; free: number; paid: number }[] = []
    for (let round = 0; round < (quick ? 2 : ROUNDS); round++)
      rounds.push({
        bare: await measured(bare, '/articles/1'),
        free: await measured(ours, '/free'),
        paid: await measured(ours, '/articles/1'),
      })
    const lowest = (row: 'bare' | 'free' | 'paid'): number => Math.min(...rounds.map((round) => round[row]))
    return [
      { name: 'a bare node:http proxy: CPU', value: lowest('bare'), unit: 'ms' },
      { name: '  over it: boltyard proxy, a free route', value: lowest('free') - lowest('bare'), unit: 'ms' },
      {
        name: '  over it: boltyard proxy, repeated L402',
        value: lowest('paid') - lowest('bare'),
        unit: 'ms',
        target: { op: '≤', value: 0.12 },
      },
    ]
  } finally {
    for (const child of started) child.kill()
  }
}
