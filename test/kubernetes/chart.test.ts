import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { Boltyard } from '../../sdk/src/index.ts'
import { paywall } from '../../sdk/src/paywall/index.ts'
import { credentialOf, invoiceIn } from '../../server/test/support/gateway.ts'
import { eventually } from '../../testing/eventually.ts'
import { SERVICE_IMAGE } from '../../testing/kubernetes/images.ts'
import { openRealCluster, type RealCluster, whyNoRealCluster } from '../../testing/kubernetes/real-cluster.ts'
import { root } from '../source-graph.ts'

/** The chart and the images on a real cluster, with the commands of docs/operations.md. */

const reason = whyNoRealCluster()
if (reason !== undefined && process.env.CI === 'true') throw new Error(`the chart cannot be tested: ${reason}`)
if (reason !== undefined) process.stderr.write(`\n*** SKIPPED: the chart on a real cluster, because ${reason} ***\n\n`)

const CHART = join(root, 'deploy/helm/boltyard')
const [RELEASE, NEXT_RELEASE] = ['0.1.0', '0.1.1']
const GUIDE = readFileSync(join(root, 'docs/operations.md'), 'utf8')

/** A command as the guide has it, with the chart of this checkout. */
function command(pattern: RegExp): string {
  const [found] = pattern.exec(GUIDE) ?? []
  if (found === undefined) throw new Error(`docs/operations.md has no command like ${pattern}`)
  return found.replace('deploy/helm/boltyard', CHART)
}

type Pod = { metadata: { name: string; uid: string }; status: { phase: string; containerStatuses?: { restartCount: number }[] } }

describe.skipIf(reason !== undefined)('the chart on a real cluster', () => {
  let cluster: RealCluster
  let url: string
  let boltyard: Boltyard
  let nodeId: string
  let password: string

  const kubectl = (...args: string[]): Promise<string> => cluster.run('kubectl', ...args)
  const shell = (script: string): Promise<string> => cluster.run('bash', '-euo', 'pipefail', '-c', script)
  const podsOf = async (namespace: string, selector = ''): Promise<Pod[]> =>
    JSON.parse(await kubectl('-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json')).items
  const podOf = async (id: string): Promise<Pod> =>
    JSON.parse(await kubectl('-n', 'boltyard-nodes', 'get', 'pod', `n-${id.slice('node_'.length)}-0`, '-o', 'json'))
  const write = (name: string, text: string): void => writeFileSync(join(cluster.directory, name), text, { mode: 0o600 })

  beforeAll(async () => {
    cluster = await openRealCluster({ tags: [RELEASE, NEXT_RELEASE] })
    const { nodeImage, storageClass, ingress } = cluster
    url = ingress.url
    const values = {
      publicUrl: url,
      image: { repository: SERVICE_IMAGE, tag: RELEASE },
      secrets: { operatorToken: { name: 'boltyard' }, redisUrl: { name: 'boltyard' } },
      settings: { LOG_LEVEL: 'warn' },
      nodes: { software: 'sandbox', versions: [{ version: '0.8.0', image: nodeImage }], storageClass },
    }
    // JSON is valid YAML.
    write('values.yaml', JSON.stringify(values))
    write('next.yaml', JSON.stringify({ ...values, image: { repository: SERVICE_IMAGE, tag: NEXT_RELEASE } }))
  })
  afterAll(() => cluster?.close())

  /** Shows what an operator would look at. */
  const explainFailure = (): void =>
    onTestFailed(async () => {
      const looks = [
        'kubectl get pods -A -o wide',
        'kubectl get events -A --field-selector type=Warning',
        ...['controller', 'api', 'hub', 'reaper'].map((part) => `kubectl -n boltyard logs deployment/boltyard-${part} --tail 20`),
      ]
      for (const look of looks) process.stderr.write(`\n$ ${look}\n${await shell(look).catch(String)}`)
    })

  const operator = async (path: string, json: object): Promise<any> => {
    const token = (await shell('kubectl -n boltyard get secret boltyard -o jsonpath={.data.operator-token} | base64 -d')).trim()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`${url}/operator/v1${path}`, { method: 'POST', headers, body: JSON.stringify(json) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return JSON.parse(text)
  }
  /** 402, pay, deliver; and no second delivery. */
  const sell = async (): Promise<void> => {
    const shop = paywall(
      { client: boltyard, nodeId, amountSat: 10, description: 'A joke', patienceMs: 60_000 },
      () => new Response('a joke'),
    )
    const visit = (headers = {}): Promise<Response> => shop(new Request('http://shop.test/joke', { headers }))
    const challenge = (await eventually(async () => {
      const refused = await visit()
      if (refused.status !== 402) throw new Error(`${refused.status} ${await refused.text()}`)
      return refused.headers.get('www-authenticate')
    }, 'the shop to answer 402')) as string
    const { preimage } = await eventually(
      () => operator('/sandbox/pay', { invoice: invoiceIn(challenge) }),
      'the payment of the invoice',
    )
    const authorization = credentialOf({ protocol: 'mpp', challenge }, preimage)
    const delivered = await visit({ authorization })
    expect([delivered.status, await delivered.text()]).toEqual([200, 'a joke'])
    expect((await visit({ authorization })).status).toBe(402)
  }
  /** The balance of the node, read through the service with its owner's password. */
  const balance = async (): Promise<number> => {
    const headers = { authorization: `Basic ${Buffer.from(`:${password}`).toString('base64')}` }
    const answer = await eventually(async () => {
      const got = await fetch(`${url}/n/${nodeId}/getbalance`, { headers })
      if (!got.ok) throw new Error(`${got.status} ${await got.text()}`)
      return (await got.json()) as { balanceSat: number }
    }, 'the balance')
    return answer.balanceSat
  }
  /** Every container has been replaced or restarted and is ready again. */
  const rolledOut = async (): Promise<void> => {
    for (const part of ['controller', 'api', 'hub', 'reaper'])
      await kubectl('-n', 'boltyard', 'rollout', 'status', `deployment/boltyard-${part}`)
  }

  test('the API server accepts every object of the chart, with strict validation', async () => {
    explainFailure()
    await kubectl('create', 'namespace', 'boltyard-nodes')
    await kubectl('create', 'namespace', 'boltyard')
    const render = `helm template boltyard ${CHART} -n boltyard -f values.yaml --kube-version 1.34.4`
    await shell(
      'kubectl config view --raw > namespaced && kubectl --kubeconfig namespaced config set-context --current --namespace boltyard',
    )
    for (const software of ['sandbox', 'phoenixd']) {
      const options = `--set nodes.software=${software} --set ingress.enabled=true --set publicUrl=https://pay.example`
      const warned = await shell(
        `${render} ${options} | kubectl --kubeconfig namespaced apply --dry-run=server --validate=strict -f - 2>&1`,
      )
      expect(warned).toContain('deployment.apps/boltyard-controller created (server dry run)')
      expect(warned).not.toContain('PodSecurity')
    }
    await kubectl('delete', 'namespace', 'boltyard-nodes', 'boltyard', '--wait')
  })

  test('installing as in docs/operations.md: migrated, all replicas ready, and helm test passes', async () => {
    explainFailure()
    const [, block = ''] = /```sh\n(\s+umask 077[\s\S]*?)```/.exec(GUIDE) ?? []
    const secrets = block.replace(/'postgres:\/\/[^']*'/, `"$(cat url)"`)
    expect(secrets).toContain('$(cat url)')
    write('url', cluster.databaseUrl)
    write('redis-url', cluster.redisUrl)
    await shell(secrets.replace('--from-file=operator-token', '--from-file=operator-token --from-file=redis-url'))
    await shell(
      'for name in node-token control-token; do openssl rand -hex 32 | tr -d "\\n" > $name; done; ' +
        'kubectl -n boltyard create secret generic boltyard-sandbox-hub --from-file=node-token --from-file=control-token',
    )
    await shell(command(/helm install boltyard [^`]*/))
    await shell(command(/kubectl -n boltyard rollout status [^`]*/))
    await rolledOut()
    const serving = (): Promise<Pod[]> => podsOf('boltyard', 'boltyard.dev/serves=true')
    await eventually(async () => (await serving()).length === 4 || undefined, 'two controllers and two replicas of the API')
    await rolledOut()
    // Read again: a pod that the autoscaler has just added has no container yet.
    expect((await serving()).map(({ status }) => status.containerStatuses?.[0]?.restartCount)).toEqual([0, 0, 0, 0])
    expect(await shell(command(/helm test [^`]*/))).toContain('Succeeded')
    const address = await kubectl('-n', 'boltyard', 'get', 'service', 'boltyard', '-o', 'jsonpath={.spec.clusterIP}')
    cluster.ingress.forwardTo(address, 8402)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
  })

  test('C16, C17: a node is created, becomes ready and sells', async () => {
    explainFailure()
    const account = await operator('/accounts', { name: 'me', creditSat: 10_000 })
    const { key } = await operator(`/accounts/${account.id}/keys`, { name: 'test', scopes: ['nodes:write', 'gateway:write'] })
    boltyard = new Boltyard({ apiKey: key, baseUrl: `${url}/v1`, maxRetries: 10 })
    const { node, credentials } = await boltyard.nodes.create({ name: 'shop' })
    nodeId = node.id
    password = credentials.password
    await boltyard.nodes.waitUntilReady(nodeId)
    await sell()
  })

  test('C24: without volume snapshots, an update is refused with the reason', async () => {
    explainFailure()
    await expect(boltyard.nodes.update(nodeId)).rejects.toThrow(/no volume snapshots/)
  })

  test('C20, C21: stop and start', async () => {
    explainFailure()
    expect((await boltyard.nodes.stop(nodeId)).status).toBe('stopped')
    await expect(podOf(nodeId)).rejects.toThrow('NotFound')
    expect((await boltyard.nodes.start(nodeId)).status).toBe('ready')
    await sell()
  })

  test('C19: a node whose processes are killed is restarted, and one whose pod is deleted gets a new pod', async () => {
    explainFailure()
    const { metadata } = await podOf(nodeId)
    // Kills everything but the container's first process, which exits with its only child. The shell may be among the killed.
    await kubectl('-n', 'boltyard-nodes', 'exec', metadata.name, '--', 'sh', '-c', 'kill -9 -1').catch(() => undefined)
    await eventually(async () => (await podOf(nodeId)).status.containerStatuses?.[0]?.restartCount === 1, 'the restart')
    await sell()
    await kubectl('-n', 'boltyard-nodes', 'delete', 'pod', metadata.name)
    await eventually(async () => (await podOf(nodeId)).metadata.uid !== metadata.uid, 'the new pod')
    await sell()
    expect((await boltyard.nodes.get(nodeId)).status).toBe('ready')
  })

  test('the service goes on when one of its pods is killed', async () => {
    explainFailure()
    const [victim] = await podsOf('boltyard', 'app.kubernetes.io/component=controller')
    await kubectl('-n', 'boltyard', 'delete', 'pod', victim?.metadata.name ?? '', '--grace-period=0', '--force')
    await sell()
    await rolledOut()
    await sell()
  })

  test('a backup is taken as in docs/operations.md', async () => {
    explainFailure()
    await shell(command(/kubectl -n boltyard exec .* backup - > .*/))
    const backups = readdirSync(cluster.directory).filter((name) => /^boltyard-\d{8}T\d{6}\.backup$/.test(name))
    expect(backups).toHaveLength(1)
    expect(readFileSync(join(cluster.directory, backups[0] ?? '')).length).toBeGreaterThan(10_000)
  })

  test('upgrading: the migration runs first, the service sells meanwhile, and nodes are not touched', async () => {
    explainFailure()
    const before = await podOf(nodeId)
    const migrations = async (): Promise<number> =>
      JSON.parse(await kubectl('-n', 'boltyard', 'get', 'events', '-o', 'json')).items.filter(
        ({ involvedObject, reason }: any) => involvedObject.name === 'boltyard-migrate' && reason === 'Completed',
      ).length
    const migratedBefore = await migrations()
    const upgrade = shell(command(/helm upgrade boltyard [^`]*values\.yaml/).replace('values.yaml', 'next.yaml')).then(rolledOut)
    let isDone = false
    const done = upgrade.finally(() => {
      isDone = true
    })
    while (!isDone) await sell()
    await done
    expect(await migrations()).toBe(migratedBefore + 1)
    const images = await kubectl('-n', 'boltyard', 'get', 'deployments', '-o', 'jsonpath={..image}')
    expect(new Set(images.split(' '))).toEqual(new Set([`${SERVICE_IMAGE}:${NEXT_RELEASE}`]))
    expect((await podOf(nodeId)).metadata.uid).toBe(before.metadata.uid)
  })

  test('C90, C91: a node is released and adopted again as in docs/operations.md, and has its money', async () => {
    explainFailure()
    const before = await balance()
    expect(before).toBeGreaterThan(0)
    // As in the first seconds after an upgrade: the first pod of the list still runs, and is about to end.
    const ending = (await podsOf('boltyard', 'app.kubernetes.io/component=controller'))
      .map(({ metadata }) => metadata.name)
      .sort()[0]
    await kubectl('-n', 'boltyard', 'delete', 'pod', ending ?? '', '--wait=false')
    const pod = (await shell(`${command(/pod=\$\(kubectl .*\)/)}; echo "$pod"`)).trim()
    expect([ending, pod]).toEqual([
      expect.stringMatching(/^boltyard-controller-/),
      expect.stringMatching(/^boltyard-controller-/),
    ])
    expect(pod).not.toBe(ending)
    const inPod = (script: string): Promise<string> => shell(`pod=${pod}; ${script}`)
    for (const pattern of [
      /kubectl .* release node_… \S+/,
      /kubectl -n boltyard cp "\$pod:\/tmp\/out" kiosk/,
      /kubectl .* rm -rf \/tmp\/out/,
    ])
      await inPod(command(pattern).replace('node_…', nodeId))
    await expect(podOf(nodeId)).rejects.toThrow('NotFound')
    for (const pattern of [
      /kubectl -n boltyard cp kiosk \S+/,
      /kubectl .* adopt \/tmp\/kiosk --account acct_…/,
      /kubectl .* rm -rf \/tmp\/kiosk/,
    ])
      await inPod(command(pattern).replace(' --account acct_…', ''))
    const [node] = await boltyard.nodes.list()
    nodeId = node?.id ?? ''
    expect(node).toMatchObject({ name: 'shop', status: 'stopped' })
    expect((await boltyard.nodes.start(nodeId)).status).toBe('ready')
    expect(await balance()).toBe(before)
    await sell()
  })

  test('C26: a deleted node is gone, and its claim and Secret are kept', async () => {
    explainFailure()
    await boltyard.nodes.delete(nodeId, { force: true })
    await eventually(async () => {
      await expect(podOf(nodeId)).rejects.toThrow('NotFound')
      return true
    }, 'the pod to be gone')
    await expect(boltyard.nodes.get(nodeId)).rejects.toMatchObject({ status: 404 })
    const kept = await kubectl('-n', 'boltyard-nodes', 'get', 'secret,persistentvolumeclaim', '-o', 'name')
    expect(kept.match(new RegExp(`n-${nodeId.slice('node_'.length)}$`, 'gm'))).toHaveLength(2)
  })

  test('uninstalling leaves nodes running', async () => {
    explainFailure()
    const { node } = await boltyard.nodes.create({ name: 'survivor' })
    await boltyard.nodes.waitUntilReady(node.id)
    const before = await podOf(node.id)
    await cluster.run('helm', 'uninstall', 'boltyard', '-n', 'boltyard', '--wait')
    await eventually(async () => (await podsOf('boltyard')).length === 0, 'the pods of the service to be gone')
    const after = await podOf(node.id)
    expect([after.metadata.uid, after.status.phase]).toEqual([before.metadata.uid, 'Running'])
  })
})
