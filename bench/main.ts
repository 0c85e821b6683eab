import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { benchCli } from './cli.ts'
import { benchBusyDashboard } from './dashboard/busy.ts'
import { benchDashboard } from './dashboard/first-load.ts'
import { benchEvents } from './events.ts'
import { benchFleet } from './fleet/fleet.ts'
import { benchGateway } from './gateway.ts'
import type { Measure } from './measure.ts'
import { benchPaywall } from './paywall.ts'
import { benchSandboxd } from './sandboxd.ts'
import { benchSdk } from './sdk.ts'
import { benchServer } from './server.ts'

const HELP = `npm run bench [-- --quick | --fleet [count]]

Measures on this machine, prints a table, writes bench/results.json. Machines differ and are noisy: compare ratios within one run.
  --quick   fewer rounds, without the dashboard and other long measurements; about a minute on two cores
  --fleet   only what many nodes on Kubernetes cost the service: 1000, or the given count, such as 10000 (takes about
            ten minutes). Needs root and Go. Leaves bench/results.json alone
`

const FLEET = 1_000

const args = process.argv.slice(2)
if (args.includes('--help') || args.includes('-h')) {
  process.stdout.write(HELP)
  process.exit(0)
}
const quick = args.includes('--quick')
const isFleet = args.includes('--fleet')
const measures = isFleet ? await benchFleet(Number(args.find((arg) => /^\d+$/.test(arg)) ?? FLEET)) : await benchAll()

const rows = measures.map(({ name, value, unit, target }) => [
  name,
  `${round(value)} ${unit}`,
  target ? `${target.op} ${target.value} ${unit}` : '',
  verdict(value, target),
])
const header = ['measure', 'value', 'target', '']
const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => row[column]?.length ?? 0)))
for (const row of [header, widths.map((width) => '-'.repeat(width)), ...rows]) {
  console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
}
if (!isFleet) writeResults()
process.exit(measures.every(({ value, target }) => verdict(value, target) !== 'MISSED') ? 0 : 1)

async function benchAll(): Promise<Measure[]> {
  const sandboxd = await benchSandboxd(quick)
  return [
    ...sandboxd.measures,
    ...(await benchServer(quick, sandboxd.startMs)),
    ...(await benchGateway(quick)),
    ...(quick ? [] : await benchEvents()),
    ...(await benchSdk(quick)),
    ...(await benchPaywall(quick)),
    ...(quick ? [] : [...(await benchDashboard()), ...(await benchBusyDashboard())]),
    ...(await benchCli(quick)),
  ]
}

function writeResults(): void {
  const results = {
    command: `npm run bench${quick ? ' -- --quick' : ''}`,
    node: process.version,
    cpu: `${cpus().length} × ${cpus()[0]?.model}`,
    measures,
  }
  writeFileSync(fileURLToPath(new URL('results.json', import.meta.url)), `${JSON.stringify(results, null, 2)}\n`)
}

function round(value: number): number {
  return value >= 100 ? Math.round(value) : Math.round(value * 100) / 100
}

function verdict(value: number, target: Measure['target']): string {
  if (!target) return ''
  return (target.op === '≤' ? value <= target.value : value >= target.value) ? 'ok' : 'MISSED'
}
