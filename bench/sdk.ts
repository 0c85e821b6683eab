import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Boltyard } from '../sdk/src/index.ts'
import { closedLoop, type Measure, median } from './measure.ts'

/** CPU time of this process per call. */
async function cpuMs(client: Boltyard, calls: number): Promise<number> {
  const before = process.cpuUsage()
  await closedLoop(calls, 16, () => client.payments.redeem('pay_1', { credential: 'x'.repeat(400) }))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / calls
}

/** What a call to the gateway costs the shop, with a server that does nothing. The clients take turns, so other load slows both equally. */
export async function benchSdk(quick: boolean): Promise<Measure[]> {
  const bare = fork(fileURLToPath(new URL('bare.ts', import.meta.url)), { execArgv: ['--import', 'tsx'] })
  const port = await new Promise<number>((resolve) => bare.once('message', (value) => resolve(value as number)))
  const options = { apiKey: 'bench', baseUrl: `http://127.0.0.1:${port}/v1`, maxConcurrency: 64 }
  const [usual, byFetch] = [new Boltyard(options), new Boltyard({ ...options, fetch })]
  const took = { usual: [] as number[], byFetch: [] as number[] }
  for (const client of [usual, byFetch]) await cpuMs(client, 2_000)
  for (let round = 0; round < (quick ? 3 : 9); round++) {
    took.usual.push(await cpuMs(usual, 1_000))
    took.byFetch.push(await cpuMs(byFetch, 1_000))
  }
  bare.kill()
  return [
    { name: 'SDK: a call to the gateway, CPU', value: median(took.usual), unit: 'ms', target: { op: '≤', value: 0.4 } },
    { name: '… by fetch', value: median(took.byFetch), unit: 'ms' },
  ]
}
