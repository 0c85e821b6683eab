import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Answer, agent, killDaemons, Service } from '../testing/service.ts'
import { cpuSeconds, type Measure, median, quantile, timed } from './measure.ts'

const IDLE_SECONDS = 30

function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/** `bareSpawnMs`: the time the same daemon takes from a direct start until its API responds, in the same run. */
export async function benchServer(quick: boolean, bareSpawnMs: number): Promise<Measure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'boltyard-bench-'))
  const service = new Service(dataDir)
  const measures: Measure[] = []
  try {
    measures.push({ name: 'service: very first start', value: await timed(() => service.start()), unit: 'ms' })
    const starts: number[] = []
    for (let round = 0; round < (quick ? 1 : 7); round++) {
      await service.stop()
      starts.push(await timed(() => service.start()))
    }
    measures.push({
      name: 'service: start with an initialised data directory',
      value: median(starts),
      unit: 'ms',
      target: { op: '≤', value: 3000 },
    })

    const ids: string[] = []
    const readies: number[] = []
    for (let round = 0; round < 10; round++) readies.push(await timed(async () => ids.push(await service.createUntilReady())))
    measures.push({ name: 'create → ready: median', value: median(readies), unit: 'ms' })
    measures.push({
      name: '  over a bare spawn of the daemon',
      value: median(readies) - bareSpawnMs,
      unit: 'ms',
      target: { op: '≤', value: 400 },
    })
    measures.push({
      name: 'service memory with 10 nodes',
      value: rssMb(service.pid),
      unit: 'MB',
      target: { op: '≤', value: 200 },
    })

    for (const id of ids) await service.call('DELETE', `/v1/nodes/${id}`)
    const sql = service.store()
    const copies = async (count: number, host: string): Promise<void> => {
      await sql`
        INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, status, desired_state, desired_version, history)
        SELECT 'node_' || lpad(${host.slice(0, 1)} || i::text, 20, '0'), account_id, ${host}, lightning_id, 'bench', auto_liquidity, access_mode, 'stopped', 'stopped',
               desired_version, history
        FROM nodes, generate_series(1, ${count}::int) i WHERE id = ${ids[0] ?? ''}`
    }
    await copies(100, readFileSync(join(dataDir, 'host.id'), 'utf8'))
    if (!quick) {
      // After the start, the sign-in library is loaded and the engine collects garbage: that is not idle usage.
      await new Promise((resolve) => setTimeout(resolve, 30_000))
      const before = cpuSeconds(service.pid)
      await new Promise((resolve) => setTimeout(resolve, IDLE_SECONDS * 1000))
      measures.push({
        name: 'idle CPU with 100 stopped nodes',
        value: ((cpuSeconds(service.pid) - before) / IDLE_SECONDS) * 100,
        unit: '% of a core',
        target: { op: '≤', value: 1 },
      })
    }

    await copies(900, 'x-another-host')
    await sql.end()
    const list = (): Promise<Answer> => service.call('GET', '/v1/nodes')
    const listed = (await list()).body.nodes.length
    if (listed !== 1000) throw new Error(`expected 1000 nodes, got ${listed}`)
    const took: number[] = []
    for (let round = 0; round < (quick ? 50 : 500); round++) took.push(await timed(list))
    measures.push({
      name: 'GET /v1/nodes of 1000 nodes: median',
      value: median(took),
      unit: 'ms',
      target: { op: '≤', value: 25 },
    })
    measures.push({ name: 'GET /v1/nodes of 1000 nodes: p99', value: quantile(took, 0.99), unit: 'ms' })
    return measures
  } finally {
    await service.stop()
    killDaemons(dataDir)
    agent.destroy()
    rmSync(dataDir, { recursive: true, force: true })
  }
}
