import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { PLANE_DIRECTORY } from '../../testing/kubernetes/plane.ts'
import { root } from '../source-graph.ts'

/** The Helm chart, rendered by helm itself. */

const CHART = join(root, 'deploy/helm/boltyard')
const CANDIDATES = process.env.HELM === undefined ? ['helm', join(PLANE_DIRECTORY, 'helm')] : [process.env.HELM]
const HELM = CANDIDATES.find((name) => spawnSync(name, ['version']).status === 0)
const DIGEST = `sha256:${'0'.repeat(64)}`

type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] }
type Probe = { httpGet: { path: string; port: string } }
type Container = {
  name: string
  image: string
  args?: string[]
  env?: { name: string; value: string }[]
  ports?: { name: string; containerPort: number }[]
  startupProbe?: Probe
  livenessProbe?: Probe
  readinessProbe?: Probe
  volumeMounts?: { name: string; mountPath: string }[]
  securityContext: Record<string, unknown>
}
type Resource = {
  kind: string
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> }
  data?: Record<string, string>
  rules?: Rule[]
  spec?: any
}

// `npm run test:kubernetes` builds helm with the control plane and runs this file, so `npm test` need not require it. If HELM is
// set, helm is required.
const isWanted = HELM !== undefined || process.env.HELM !== undefined
if (!isWanted)
  process.stderr.write('\n### SKIPPED: chart.test.ts: there is no helm; `npm run test:kubernetes` builds one ###\n\n')

const VALUES = {
  publicUrl: 'https://pay.example',
  'nodes.versions[0].version': '0.8.0',
  'nodes.versions[0].image': `node@${DIGEST}`,
}

function helm(command: string[], values: Record<string, string>): string {
  if (HELM === undefined) throw new Error('HELM does not name a helm that runs')
  const set = Object.entries({ ...VALUES, ...values }).flatMap(([name, value]) => [
    '--set',
    `${name}=${value.replaceAll(',', '\\,')}`,
  ])
  return execFileSync(HELM, [...command, '--kube-version', '1.34.4', ...set], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
function render(values: Record<string, string> = {}): Resource[] {
  const text = helm(['template', 'yard', CHART, '--namespace', 'services'], values)
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Resource | null)
    .filter((resource) => resource !== null)
}
const of = (resources: Resource[], kind: string): Resource[] => resources.filter((one) => one.kind === kind)
const named = (resources: Resource[], kind: string, name: string): Resource => {
  const found = resources.find((one) => one.kind === kind && one.metadata.name === name)
  if (!found) throw new Error(`the chart has no ${kind} ${name}`)
  return found
}
const podsOf = (resources: Resource[]): { name: string; spec: any; containers: Container[] }[] =>
  resources
    .filter(({ kind }) => ['Deployment', 'Job', 'Pod'].includes(kind))
    .map(({ kind, metadata, spec }) => {
      const pod = kind === 'Pod' ? spec : spec.template.spec
      return { name: metadata.name, spec: pod, containers: [...(pod.initContainers ?? []), ...pod.containers] }
    })

const PHOENIXD = { 'nodes.software': 'phoenixd' }
const EVERYTHING = {
  nodeDomain: 'nodes.example',
  trustProxy: '1',
  'ingress.enabled': 'true',
  'metrics.podMonitor.enabled': 'true',
  'secrets.redisUrl.name': 'redis',
  'secrets.operatorToken.name': 'operator',
  'secrets.metricsToken.name': 'metrics',
  'secrets.otlpHeaders.name': 'otlp',
}

describe.skipIf(!isWanted)('the Helm chart', () => {
  test.each([{}, PHOENIXD, EVERYTHING])('helm finds nothing wrong with %j', (values) => {
    expect(helm(['lint', CHART, '--strict'], values)).toContain('0 chart(s) failed')
  })

  test.each<[string, Record<string, string>]>([
    ['publicUrl', { publicUrl: 'pay.example' }],
    ['an image without a digest', { 'nodes.versions[0].image': 'acinq/phoenixd:0.8.0' }],
    ['a secret among the settings', { 'settings.MASTER_KEY': 'x' }],
    ['an unknown value', { 'api.replica': '3' }],
    ['no master key', { 'secrets.masterKey.name': '' }],
    ['an unknown software', { 'nodes.software': 'lnd' }],
  ])('the schema refuses %s', (_what, values) => {
    expect(() => render(values)).toThrow(/schema/)
  })

  test('every pod is restricted: no root, no capabilities, and only its volumes are writable', () => {
    const pods = podsOf(render())
    expect(pods.map(({ name }) => name).sort()).toEqual([
      'yard-api',
      'yard-controller',
      'yard-hub',
      'yard-migrate',
      'yard-reaper',
      'yard-test',
    ])
    for (const { spec, containers } of pods) {
      expect(spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      for (const { securityContext } of containers)
        expect(securityContext).toEqual({
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        })
    }
  })

  test('permissions are those in docs/kubernetes.md, and only in the namespace of the nodes', () => {
    const resources = render()
    expect(resources.filter(({ kind }) => kind.startsWith('Cluster'))).toEqual([])
    for (const one of [...of(resources, 'Role'), ...of(resources, 'RoleBinding')])
      expect(one.metadata.namespace).toBe('boltyard-nodes')
    const [, table = ''] =
      /## Rights\n[\s\S]*?\n\|---.*\n([\s\S]*?)\n\n/.exec(readFileSync(join(root, 'docs/kubernetes.md'), 'utf8')) ?? []
    let account = ''
    const documented = table.split('\n').map((line) => {
      const [, who = '', group = '', resource = '', verbs = ''] = line.split('|').map((cell) => cell.trim().replace(/`/g, ''))
      account = who.split(' ')[0] || account
      return `${account.replace('boltyard', 'yard')}: ${group === 'core' ? '' : group}/${resource}: ${verbs}`
    })
    const granted = ['yard', 'yard-api', 'yard-reaper'].flatMap((name) =>
      (named(resources, 'Role', name).rules ?? []).map(
        ({ apiGroups, resources: [resource], verbs }) => `${name}: ${apiGroups[0]}/${resource}: ${verbs.join(', ')}`,
      ),
    )
    expect(granted.length).toBeGreaterThan(8)
    expect(granted.sort()).toEqual(documented.sort())
  })

  test('only the reaper can delete claims and Secrets, and nobody can list Secrets', () => {
    const can = (verb: string, resource: string): string[] =>
      of(render(), 'Role')
        .filter(({ rules = [] }) => rules.some((rule) => rule.resources.includes(resource) && rule.verbs.includes(verb)))
        .map(({ metadata }) => metadata.name)
    expect(can('delete', 'persistentvolumeclaims')).toEqual(['yard-reaper'])
    expect(can('delete', 'secrets')).toEqual(['yard-reaper'])
    expect([...can('list', 'secrets'), ...can('watch', 'secrets')]).toEqual([])
  })

  test('secrets are files from Secrets that exist; the chart holds none', () => {
    const resources = render(EVERYTHING)
    expect(of(resources, 'Secret')).toEqual([])
    const api = podsOf(resources).find(({ name }) => name === 'yard-api')
    const env = Object.fromEntries(api?.containers[0]?.env?.map(({ name, value }) => [name, value]) ?? [])
    const expected = [
      'DATABASE_URL',
      'MASTER_KEY',
      'METRICS_TOKEN',
      'OPERATOR_TOKEN',
      'OTEL_EXPORTER_OTLP_HEADERS',
      'REDIS_URL',
      'SANDBOX_HUB_CONTROL_TOKEN',
      'SANDBOX_HUB_NODE_TOKEN',
    ]
    expect(env).toEqual({
      ROLE: 'api',
      ...Object.fromEntries(expected.map((name) => [`${name}_FILE`, `/run/secrets/boltyard/${name}`])),
    })
    const volume = api?.spec.volumes.find(({ name }: { name: string }) => name === 'secrets')
    const mounted = volume.projected.sources.map(({ secret }: any) => secret.items[0].path)
    expect(mounted.sort()).toEqual(expected)
  })

  test('the migration runs before anything else, without permissions and with only the database secrets', () => {
    const job = named(render(EVERYTHING), 'Job', 'yard-migrate')
    expect(job.metadata.annotations?.['helm.sh/hook']).toBe('pre-install,pre-upgrade')
    const { automountServiceAccountToken, containers } = job.spec.template.spec
    expect(automountServiceAccountToken).toBe(false)
    expect(containers[0].args).toEqual(['migrate'])
    expect(containers[0].env.map(({ name }: { name: string }) => name)).toEqual(['HOST', 'DATABASE_URL_FILE', 'MASTER_KEY_FILE'])
    expect(containers[0].envFrom).toBeUndefined()
  })

  test('the data directory is inside its volume, because root owns the volume and the service changes the permissions', () => {
    const resources = render()
    const { DATA_DIR } = named(resources, 'ConfigMap', 'yard').data ?? {}
    for (const name of ['yard-controller', 'yard-api', 'yard-reaper']) {
      const [container] = podsOf(resources).find((pod) => pod.name === name)?.containers ?? []
      const { mountPath } = container?.volumeMounts?.find((mount) => mount.name === 'data') ?? {}
      expect(DATA_DIR).toMatch(new RegExp(`^${mountPath}/.`))
    }
  })

  test('every role is probed where it listens: restarted by /healthz, and ready by /readyz', () => {
    const resources = render()
    const { PORT } = named(resources, 'ConfigMap', 'yard').data ?? {}
    for (const name of ['yard-controller', 'yard-api', 'yard-reaper']) {
      const [container] = podsOf(resources).find((pod) => pod.name === name)?.containers ?? []
      const { startupProbe, livenessProbe, readinessProbe, ports } = container ?? {}
      expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet)).toEqual([
        { path: '/healthz', port: 'http' },
        { path: '/healthz', port: 'http' },
        { path: '/readyz', port: 'http' },
      ])
      expect(ports).toContainEqual({ name: 'http', containerPort: Number(PORT) })
    }
  })

  test('the Service leads only to pods that serve, not to the reaper, although it listens too', () => {
    const resources = render()
    const { selector } = named(resources, 'Service', 'yard').spec
    const isBehind = ({ spec }: Resource): boolean =>
      Object.entries(selector).every(([label, value]) => spec.template.metadata.labels[label] === value)
    const names = of(resources, 'Deployment')
      .filter(isBehind)
      .map(({ metadata }) => metadata.name)
    expect(names.sort()).toEqual(['yard-api', 'yard-controller'])
  })

  test('every setting is documented', () => {
    const docs = ['docs/operating.md', 'docs/kubernetes.md'].map((path) => readFileSync(join(root, path), 'utf8')).join('\n')
    for (const values of [EVERYTHING, PHOENIXD]) {
      const names = Object.keys(named(render(values), 'ConfigMap', 'yard').data ?? {})
      expect(names.length).toBeGreaterThan(8)
      expect(names.filter((name) => !docs.includes(`\`${name}\``))).toEqual([])
    }
  })

  test('uninstalling keeps the namespace with the wallets', () => {
    const { annotations, labels } = named(render(), 'Namespace', 'boltyard-nodes').metadata
    expect(annotations).toEqual({ 'helm.sh/resource-policy': 'keep' })
    expect(labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' })
  })

  test('nodes reach the public network only with phoenixd, and never private addresses', () => {
    const cidrs = (values: Record<string, string>): string[] =>
      named(render(values), 'NetworkPolicy', 'nodes').spec.egress.flatMap(({ to }: any) =>
        to.flatMap(({ ipBlock }: any) => (ipBlock ? [`${ipBlock.cidr} except ${ipBlock.except ?? 'none'}`] : [])),
      )
    expect(cidrs({})).toEqual([])
    expect(cidrs(PHOENIXD)).toEqual([
      '3.33.236.230/32 except none',
      '13.248.222.197/32 except none',
      '0.0.0.0/0 except 10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,100.64.0.0/10',
    ])
    expect(named(render(), 'NetworkPolicy', 'deny-all').spec).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
  })

  test('a changed setting replaces the pods; an unchanged one does not', () => {
    const hashOf = (values: Record<string, string>): string =>
      named(render(values), 'Deployment', 'yard-api').spec.template.metadata.annotations['boltyard.dev/config']
    expect(hashOf({})).toBe(hashOf({}))
    expect(hashOf({ 'settings.RETENTION_DAYS': '60' })).not.toBe(hashOf({}))
  })

  test('with autoscaling, the chart does not reset the number of replicas', () => {
    expect(named(render(), 'Deployment', 'yard-api').spec.replicas).toBeUndefined()
    expect(named(render({ 'api.autoscaling.enabled': 'false' }), 'Deployment', 'yard-api').spec.replicas).toBe(2)
  })
})

test('the chart has the version of the package', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const text = readFileSync(join(CHART, 'Chart.yaml'), 'utf8')
  expect(existsSync(join(CHART, 'values.schema.json'))).toBe(true)
  expect(text).toContain(`appVersion: ${version}\n`)
})
