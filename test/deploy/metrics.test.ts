import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import { beforeAll, expect, test } from 'vitest'
import { createInstruments, createRegistry } from '../../server/src/metrics/instruments.ts'
import { root } from '../source-graph.ts'

/** The documentation and the Grafana board name only metrics that exist. */

type Metric = { name: string; type: string; labels: string[] }
let metrics: Metric[]

beforeAll(async () => {
  const registry: Registry = createRegistry()
  createInstruments(registry)
  metrics = (await registry.getMetricsAsJSON()).map(({ name, type }) => {
    const { labelNames = [] } = registry.getSingleMetric(name) as { labelNames?: string[] }
    return { name, type: String(type), labels: labelNames }
  })
})

/** A histogram is stored under three names. */
const seriesOf = ({ name, type }: Metric): string[] =>
  type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]

type Board = { panels: { title: string; targets?: { expr: string }[] }[]; templating: { list: { definition?: string }[] } }
const board: Board = JSON.parse(readFileSync(join(root, 'deploy/grafana/boltyard.json'), 'utf8'))
const expressions = [
  ...board.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...board.templating.list.flatMap(({ definition }) => definition ?? []),
]

test('every expression of the Grafana board names metrics that exist, with labels they have', () => {
  const known = new Map(metrics.flatMap((metric) => seriesOf(metric).map((name) => [name, metric])))
  expect(expressions.length).toBeGreaterThan(20)
  for (const expression of expressions) {
    const used = [...expression.matchAll(/\b((?:boltyard|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)]
    expect(used, expression).not.toEqual([])
    for (const [, name = '', selector = ''] of used) {
      const metric = known.get(name)
      expect(metric, `${name} in ${expression}`).toBeDefined()
      const labels = [...selector.matchAll(/(\w+)\s*[=!]/g)].map(([, label = '']) => label)
      // Prometheus adds the label `instance`.
      expect([...(metric?.labels ?? []), 'instance'], expression).toEqual(expect.arrayContaining(labels))
    }
  }
})

test('every metric of the service is on the board', () => {
  const own = metrics.filter(({ name }) => name.startsWith('boltyard_'))
  const shown = (metric: Metric): boolean => seriesOf(metric).some((name) => expressions.some((one) => one.includes(name)))
  expect(own.filter((metric) => !shown(metric)).map(({ name }) => name)).toEqual([])
})

test('docs/operating.md lists exactly the metrics of the service, with their labels', () => {
  const text = readFileSync(join(root, 'docs/operating.md'), 'utf8')
  const listed = [...text.matchAll(/^\| `(boltyard_\w+)` \|([^|]*)\|/gm)].map(([, name = '', labels = '']) => ({
    name,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label).sort(),
  }))
  const own = metrics.filter(({ name }) => name.startsWith('boltyard_'))
  const expected = own.map(({ name, labels }) => ({ name, labels: [...labels].sort() }))
  const byName = (a: { name: string }, b: { name: string }): number => a.name.localeCompare(b.name)
  expect(listed.sort(byName)).toEqual(expected.sort(byName))
})
