import { writeFileSync } from 'node:fs'
import type { ClusterAccess } from '../../server/src/runtimes/kubernetes/access.ts'
import type { KubernetesClient } from '../../server/src/runtimes/kubernetes/client.ts'
import type { Resource } from '../../server/src/runtimes/kubernetes/types.ts'

export type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] }

/** The rules in the table "Rights" of docs/kubernetes.md, by service account. */
export function rulesIn(page: string): Map<string, Rule[]> {
  const rules = new Map<string, Rule[]>()
  let account = ''
  for (const [, name = '', group = '', resource = '', verbs = ''] of page.matchAll(
    /^\| (?:`(boltyard[\w-]*)`[^|]*)?\| (core|`[\w.]+`) \| `(\w+)` \| ([a-z, ]+) \|$/gm,
  )) {
    account = name || account
    const apiGroups = [group === 'core' ? '' : group.replaceAll('`', '')]
    rules.set(account, [...(rules.get(account) ?? []), { apiGroups, resources: [resource], verbs: verbs.split(', ') }])
  }
  return rules
}

/** Creates a service account with exactly these rights. Returns the path of a kubeconfig with its token. */
export async function grant(
  admin: KubernetesClient,
  access: ClusterAccess,
  namespace: string,
  name: string,
  rules: Rule[],
  path: string,
): Promise<string> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name }
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
  await admin.create(accounts, { metadata: { name } })
  await admin.create(`${rbac}/roles`, { metadata: { name }, rules } as Resource)
  await admin.create(`${rbac}/rolebindings`, { metadata: { name }, roleRef, subjects } as Resource)
  const request = { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', metadata: { name }, spec: {} }
  const answer = (await admin.create(`${accounts}/${name}/token`, request)) as { status?: { token?: string } } | undefined
  const config = {
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: name } }],
    clusters: [
      { name: 'test', cluster: { server: access.server.href, 'certificate-authority-data': access.ca?.toString('base64') } },
    ],
    users: [{ name, user: { token: answer?.status?.token } }],
  }
  // JSON is valid YAML.
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
  return path
}
