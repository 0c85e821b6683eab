import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import { StartFault } from '../../platform/start-fault.ts'

/** Where the API server is, and how we authenticate to it. */
export type ClusterAccess = {
  server: URL
  ca: Buffer | undefined
  cert: Buffer | undefined
  key: Buffer | undefined
  /** Called for every request, because a service account's token is replaced while we run. */
  token: () => string | undefined
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
/** The kubelet replaces a token long before it expires, so it need not be read more often. */
const TOKEN_CACHE_MS = 10_000

/** Inside the cluster: the service account of this pod. */
export function accessOfPod(host: string, port: number, directory = SERVICE_ACCOUNT): ClusterAccess {
  return {
    server: new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`),
    ca: readAtStart(`${directory}/ca.crt`),
    cert: undefined,
    key: undefined,
    token: tokenIn(`${directory}/token`),
  }
}

type Entry = Record<string, string | undefined>
type KubeConfig = {
  'current-context'?: string
  contexts?: { name: string; context: { cluster: string; user: string } }[]
  clusters?: { name: string; cluster: Entry }[]
  users?: { name: string; user: Entry }[]
}

/** Outside the cluster: the current context of a kubeconfig with a token or a client certificate. */
export function accessOfFile(path: string): ClusterAccess {
  const config = parseConfig(path)
  const context = config.contexts?.find(({ name }) => name === config['current-context'])?.context
  const cluster = config.clusters?.find(({ name }) => name === context?.cluster)?.cluster
  const user = config.users?.find(({ name }) => name === context?.user)?.user
  if (!cluster || !user) throw new StartFault(78, 'KUBECONFIG: the current context has no cluster or no user')
  if (!URL.canParse(cluster.server ?? '') || !cluster.server?.startsWith('https:'))
    throw new StartFault(78, 'KUBECONFIG: the server must be an https URL')
  const bytes = (entry: Entry, name: string): Buffer | undefined => {
    const [data, file] = [entry[`${name}-data`], entry[name]]
    if (data !== undefined) return Buffer.from(data, 'base64')
    return file === undefined ? undefined : readAtStart(resolve(dirname(path), file))
  }
  const { token, tokenFile } = user
  const cert = bytes(user, 'client-certificate')
  if (token === undefined && tokenFile === undefined && cert === undefined)
    throw new StartFault(78, 'KUBECONFIG: the user needs a token or a client certificate; plugins are not supported')
  return {
    server: new URL(cluster.server),
    ca: bytes(cluster, 'certificate-authority'),
    cert,
    key: bytes(user, 'client-key'),
    token: token === undefined && tokenFile !== undefined ? tokenIn(resolve(dirname(path), tokenFile)) : () => token,
  }
}

function parseConfig(path: string): KubeConfig {
  const text = readAtStart(path).toString('utf8')
  try {
    return (parse(text) as KubeConfig | null) ?? {}
  } catch {
    // The parser's message quotes the file, which contains credentials.
    throw new StartFault(78, 'KUBECONFIG: the file is not valid YAML')
  }
}

function readAtStart(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new StartFault(78, `Kubernetes: cannot read ${path} (${(error as NodeJS.ErrnoException).code})`)
  }
}

function tokenIn(path: string): () => string {
  let known = { token: '', readAtMs: Number.NEGATIVE_INFINITY }
  return () => {
    if (performance.now() - known.readAtMs > TOKEN_CACHE_MS)
      known = { token: readFileSync(path, 'utf8').trim(), readAtMs: performance.now() }
    return known.token
  }
}
