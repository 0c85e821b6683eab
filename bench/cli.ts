import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Measure, median } from './measure.ts'

const BOLTYARD = fileURLToPath(new URL('../cli/dist/boltyard.js', import.meta.url))

function tookMs(args: string[]): number {
  const started = performance.now()
  const { status } = spawnSync(process.execPath, args, { env: { PATH: process.env.PATH, HOME: '/nonexistent' } })
  if (status !== 0) throw new Error(`${args.join(' ')}: exit ${status}`)
  return performance.now() - started
}

/** Alternates with bare Node, so that other load on the machine slows both equally. */
export async function benchCli(quick: boolean): Promise<Measure[]> {
  const calls = { bare: ['-e', '0'], version: [BOLTYARD, '--version'], help: [BOLTYARD, '--help'] }
  const took = { bare: [] as number[], version: [] as number[], help: [] as number[] }
  for (let round = 0; round < (quick ? 10 : 30); round++)
    for (const name of Object.keys(calls) as (keyof typeof calls)[]) took[name].push(tookMs(calls[name]))
  const target = { op: '≤', value: 150 } as const
  return [
    { name: 'command line: --version, over a bare Node', value: median(took.version) - median(took.bare), unit: 'ms', target },
    { name: 'command line: --help, over a bare Node', value: median(took.help) - median(took.bare), unit: 'ms', target },
  ]
}
