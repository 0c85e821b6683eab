import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isId } from './platform/ids.ts'
import { hasNamedId, type IdRange, lookUpUser, type UserIds } from './platform/linux.ts'
import { isLoopback } from './platform/loopback.ts'
import { headersIn } from './platform/otlp-headers.ts'
import { StartFault } from './platform/start-fault.ts'

export type Config = {
  host: string
  port: number
  publicUrl: string
  /** Additional host names to accept, in lower case and without ports. */
  allowedHosts: string[]
  /** A sandbox on the developer's own machine, unreachable from outside. The defaults are permissive only in this case. */
  isLocal: boolean
  dataDir: string
  /** Embedded: the service runs PostgreSQL itself, with its data in DATA_DIR, and generates any missing secret there. */
  store: { kind: 'embedded' } | { kind: 'server'; url: string }
  /** Undefined: limits are counted in memory with the embedded store, otherwise in the database. */
  redisUrl: string | undefined
  /** Undefined: the service generates the key in DATA_DIR (embedded store only), or needs none (reaper). */
  masterKey: Buffer | undefined
  previousMasterKey: Buffer | undefined
  /** A configured token, one to generate in DATA_DIR, or no operator API. */
  operator: { token: string } | 'generate' | 'off'
  /** reaper: removes deleted nodes past their retention period, and does nothing else. */
  role: 'all' | 'api' | 'reaper'
  /** Undefined: nodes are served under a path of the service, PUBLIC_URL/n/<nodeId>. */
  nodeDomain: string | undefined
  nodeCallbackUrl: string
  /** The network follows from the software, so a sandbox on mainnet is impossible. */
  software:
    | { kind: 'sandbox'; versions: Map<string, string> | undefined }
    | { kind: 'phoenixd'; chain: 'mainnet' | 'testnet'; versions: Map<string, string> }
  /** Undefined: nodes are processes on this machine. */
  kubernetes:
    | {
        namespace: string
        /** Undefined: the cluster's default. */
        storageClass: string | undefined
        storageSize: string
        /** Undefined: nodes cannot be updated, because their data cannot be copied first. */
        snapshotClass: string | undefined
        /** The image of this service. Undefined: wallets cannot be moved into and out of volumes. */
        walletImage: string | undefined
        access: { file: string } | { host: string; port: number }
        /** Only in the sandbox. */
        hub: { host: string; port: number; nodeToken: string; controlToken: string } | undefined
      }
    | undefined
  /** Who may sign up: anyone, only people with an invitation, or no one. */
  registration: 'open' | 'invite' | 'off'
  /** The Unix users of nodes, one per node. Undefined unless we are root and nodes are processes on this machine. */
  nodeUids: IdRange | undefined
  /** The Unix user that runs the embedded PostgreSQL. Set only if the service runs as root and has no DATABASE_URL. */
  postgresUser: UserIds | undefined
  maxNodesPerAccount: number
  maxNodes: number
  nodePriceSatPerDay: number
  creditGraceHours: number
  /** Who receives payments for credit: the given node, one that is created automatically (undefined id), or no one. */
  treasury: { nodeId: string | undefined } | 'none'
  challengeLifetimeSeconds: number
  /** Per node; 0 means no limit. */
  maxOpenChallenges: number
  l402LifetimeSeconds: number
  provisionDeadlineMs: number
  operationTimeoutMs: number
  eventRetentionDays: number
  retentionDays: number
  rateLimit: { max: number; windowSeconds: number; gatewayMax: number }
  trustProxy: number | string[] | false
  /** Whether webhooks may lead to addresses that are not reachable from the internet. */
  webhookAllowPrivate: boolean
  signupCreditSat: number
  maxKeysPerAccount: number
  /** Undefined: no metrics. */
  metrics: { host: string; port: number; token: string | undefined } | undefined
  /** Undefined: no traces. The ratio of requests that are recorded is from 0 to 1. */
  traces: { url: string; headers: Record<string, string>; ratio: number; serviceName: string } | undefined
  logLevel: string
  /** Allowed but probably unintended settings, for the log. */
  warnings: string[]
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

const DEFAULT_NODE_UIDS = '50000-54999'
const MIN_NODE_UID = 1_000
/** The database column and the kernel allow more, but some systems reserve higher ids for "nobody". */
const MAX_NODE_UID = 2_000_000_000

/** The only reader of the environment. Reports all invalid variables at once and never shows a value. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const faults: string[] = []
  const fault = <T>(name: string, why: string, instead: T): T => {
    faults.push(`${name}: ${why}`)
    return instead
  }
  const text = (name: string): string | undefined => environment[name] || undefined
  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const value = text(name)
    if (value === undefined) return fallback
    if (!/^\d{1,15}$/.test(value) || Number(value) < min || Number(value) > max)
      return fault(name, `must be a whole number from ${min} to ${max}`, fallback)
    return Number(value)
  }
  const url = (name: string): string | undefined => {
    const value = text(name)
    if (value === undefined) return undefined
    const parsed = URL.canParse(value) ? new URL(value) : undefined
    if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username || parsed.search || parsed.hash) {
      return fault(name, 'must be an http or https URL without credentials, query and fragment', undefined)
    }
    // `hostNameOf` removes the dot from the `Host` header of a request, so no request would match this name.
    if (parsed.hostname.endsWith('.')) return fault(name, 'the host name must not end with a dot', undefined)
    return value.replace(/\/+$/, '')
  }
  /** The value of NAME, or the contents of the file that NAME_FILE names, for secrets that must not appear in the environment. */
  const secret = (name: string): string | undefined => {
    const [value, file] = [text(name), text(`${name}_FILE`)]
    if (value !== undefined && file !== undefined) return fault(name, `set only one of ${name} and ${name}_FILE`, undefined)
    if (file === undefined) return value
    try {
      return readFileSync(file, 'utf8').trim() || fault(`${name}_FILE`, 'the file is empty', undefined)
    } catch (error) {
      return fault(`${name}_FILE`, `the file cannot be read (${(error as NodeJS.ErrnoException).code})`, undefined)
    }
  }
  const key = (name: string): Buffer | undefined => {
    const value = secret(name)
    if (value === undefined) return undefined
    const bytes = Buffer.from(value, 'base64')
    const canonical = bytes.length === 32 && bytes.toString('base64').replace(/=+$/, '') === value.replace(/=+$/, '')
    return canonical ? bytes : fault(name, 'must be 32 bytes in base64 (openssl rand -base64 32)', undefined)
  }

  const host = text('HOST') ?? '127.0.0.1'
  const port = integer('PORT', 8402, 0, 65_535)
  const isWildcard = ['0.0.0.0', '::'].includes(host)
  if (isWildcard && !text('PUBLIC_URL'))
    fault('PUBLIC_URL', 'required when HOST is a wildcard: clients cannot reach a wildcard address', undefined)

  const publicUrl = url('PUBLIC_URL') ?? `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  if (!URL.canParse(publicUrl)) fault('HOST', 'must be an address or a host name', undefined)
  // A loopback HOST does not mean that all clients are local: a reverse proxy may forward requests to it.
  const isPublic = URL.canParse(publicUrl) && !isLoopback(new URL(publicUrl).hostname)
  const isSandbox = text('NODE_SOFTWARE') !== 'phoenixd'
  const isLocal = isLoopback(host) && !isPublic && isSandbox
  const warnings: string[] = []
  if (isLoopback(host) && isPublic && !text('TRUST_PROXY'))
    warnings.push(
      'PUBLIC_URL is not on this machine and TRUST_PROXY is not set: all clients share the proxy’s address and its rate limits',
    )

  const choice = <T extends string>(name: string, choices: readonly [T, ...T[]]): T => {
    const value = text(name) ?? choices[0]
    return choices.find((one) => one === value) ?? fault(name, `must be one of ${choices.join(', ')}`, choices[0])
  }
  const onKubernetes = choice('NODE_RUNTIME', ['process', 'kubernetes']) === 'kubernetes'
  const role = choice('ROLE', ['all', 'api', 'reaper'])
  // The reaper starts no node and opens no secret, so it needs neither images nor keys.
  const isReaper = role === 'reaper'
  if (isReaper && !onKubernetes) fault('ROLE', 'reaper requires NODE_RUNTIME=kubernetes', undefined)

  const databaseUrl = secret('DATABASE_URL')
  if (databaseUrl !== undefined && !(/^postgres(ql)?:\/\//.test(databaseUrl) && URL.canParse(databaseUrl)))
    fault('DATABASE_URL', 'must be a postgres:// URL', undefined)
  const redisUrl = secret('REDIS_URL')
  if (redisUrl !== undefined && !(/^rediss?:\/\//.test(redisUrl) && URL.canParse(redisUrl)))
    fault('REDIS_URL', 'must be a redis:// or rediss:// URL', undefined)
  const masterKey = key('MASTER_KEY')
  const hasMasterKey = text('MASTER_KEY') ?? text('MASTER_KEY_FILE')
  if (databaseUrl !== undefined && !hasMasterKey && !isReaper)
    fault('MASTER_KEY', 'required with DATABASE_URL (or set MASTER_KEY_FILE)', undefined)

  /** Oldest first. */
  const versions = (): Map<string, string> | undefined => {
    const value = text('NODE_VERSIONS')
    if (value === undefined && onKubernetes && !isReaper)
      fault('NODE_VERSIONS', 'required with NODE_RUNTIME=kubernetes', undefined)
    if (value === undefined) return undefined
    const [what, form] = onKubernetes
      ? [/^\s*([\w.+-]+)=([\w.:/-]+@sha256:[0-9a-f]{64})\s*$/, 'version=image@sha256:digest,…']
      : [/^\s*([\w.+-]+)=(\/.+?)\s*$/, 'version=/absolute/path,…']
    const pairs = value.split(',').map((pair) => what.exec(pair))
    if (pairs.some((pair) => !pair)) return fault('NODE_VERSIONS', `must be ${form} with the oldest first`, undefined)
    return new Map(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? '']))
  }
  const software = (): Config['software'] => {
    const catalogue = versions()
    if (choice('NODE_SOFTWARE', ['sandbox', 'phoenixd']) === 'sandbox') return { kind: 'sandbox', versions: catalogue }
    if (!catalogue && !text('NODE_VERSIONS') && !onKubernetes)
      fault('NODE_VERSIONS', 'required with NODE_SOFTWARE=phoenixd', undefined)
    return { kind: 'phoenixd', chain: choice('NODE_CHAIN', ['mainnet', 'testnet']), versions: catalogue ?? new Map() }
  }
  const registration = (): Config['registration'] => {
    if (!text('REGISTRATION')) return isLocal ? 'open' : 'invite'
    const chosen = choice('REGISTRATION', ['open', 'invite', 'off'])
    if (chosen === 'open' && !isSandbox && !onKubernetes)
      return fault(
        'REGISTRATION',
        'cannot be open when phoenixd runs as local processes: strangers’ nodes would share this host',
        'invite',
      )
    return chosen
  }
  const kubernetes = (): Config['kubernetes'] => {
    if (!onKubernetes) return undefined
    if (databaseUrl === undefined) fault('DATABASE_URL', 'required with NODE_RUNTIME=kubernetes', undefined)
    if (!text('NODE_CALLBACK_URL') && !isReaper) fault('NODE_CALLBACK_URL', 'required with NODE_RUNTIME=kubernetes', undefined)
    const name = (variable: string): string | undefined => {
      const value = text(variable)
      if (value === undefined || /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(value)) return value
      return fault(variable, 'must be the name of a Kubernetes object', undefined)
    }
    const storageSize = text('NODE_STORAGE_SIZE') ?? '1Gi'
    if (!/^[1-9]\d{0,9}(Mi|Gi|Ti|M|G|T)$/.test(storageSize)) fault('NODE_STORAGE_SIZE', 'must be a size such as 1Gi', undefined)
    return {
      namespace: name('NODE_NAMESPACE') ?? 'boltyard-nodes',
      storageClass: name('NODE_STORAGE_CLASS'),
      storageSize,
      snapshotClass: name('NODE_SNAPSHOT_CLASS'),
      walletImage: text('WALLET_IMAGE'),
      access: clusterAccess(),
      hub: isSandbox && !isReaper ? sandboxHub() : undefined,
    }
  }
  const clusterAccess = (): { file: string } | { host: string; port: number } => {
    const [file, host] = [text('KUBECONFIG'), text('KUBERNETES_SERVICE_HOST')]
    if (file !== undefined) return { file }
    if (host === undefined) return fault('KUBECONFIG', 'required outside a cluster', { file: '' })
    return { host, port: integer('KUBERNETES_SERVICE_PORT', 443, 1, 65_535) }
  }
  const sandboxHub = (): { host: string; port: number; nodeToken: string; controlToken: string } => {
    const token = (name: string): string => {
      const value = secret(name)
      if (value !== undefined && /^[\w.~-]{16,}$/.test(value)) return value
      return fault(name, 'must be the token of the sandbox hub: at least 16 letters, digits, or any of . _ ~ -', '')
    }
    const [, host = '', port = ''] = /^([\w.-]+):(\d{1,5})$/.exec(text('SANDBOX_HUB') ?? '') ?? []
    if (host === '' || Number(port) > 65_535) fault('SANDBOX_HUB', 'must be host:port of the sandbox hub', undefined)
    return {
      host,
      port: Number(port),
      nodeToken: token('SANDBOX_HUB_NODE_TOKEN'),
      controlToken: token('SANDBOX_HUB_CONTROL_TOKEN'),
    }
  }
  const nodeDomain = text('NODE_DOMAIN')
  const [nodeName = '', nodePort = ''] = nodeDomain?.split(':') ?? []
  if (nodeDomain !== undefined && (!/^[a-z0-9-]+(\.[a-z0-9-]+)*(:\d{1,5})?$/.test(nodeDomain) || Number(nodePort) > 65_535))
    fault('NODE_DOMAIN', 'must be a domain name in lower case', undefined)
  // Every host name below NODE_DOMAIN belongs to a node, so PUBLIC_URL would not reach the service.
  else if (nodeDomain !== undefined && URL.canParse(publicUrl) && `.${new URL(publicUrl).hostname}`.endsWith(`.${nodeName}`))
    fault('NODE_DOMAIN', 'the host of PUBLIC_URL must not be this domain or below it', undefined)

  const isRoot = process.getuid?.() === 0
  const nodeUids = (): IdRange | undefined => {
    const [, from, to] = (/^(\d{1,10})-(\d{1,10})$/.exec(text('NODE_UID_RANGE') ?? DEFAULT_NODE_UIDS) ?? []).map(Number)
    if (from === undefined || to === undefined || from < MIN_NODE_UID || to > MAX_NODE_UID || to - from < 1)
      return fault('NODE_UID_RANGE', `must be a range first-last within ${MIN_NODE_UID} to ${MAX_NODE_UID}`, undefined)
    if (!isRoot) return undefined
    if (hasNamedId({ from, to })) return fault('NODE_UID_RANGE', 'overlaps the id of an existing user or group', undefined)
    return { from, to }
  }
  const postgresUser = (): UserIds | undefined => {
    if (!isRoot || databaseUrl !== undefined) return undefined
    const name = text('POSTGRES_USER_NAME')
    const user = name === undefined ? lookUpUser('postgres', 'nobody') : lookUpUser(name)
    if (!user) return fault('POSTGRES_USER_NAME', 'required as root and must be an existing user', undefined)
    return user.uid === 0 ? fault('POSTGRES_USER_NAME', 'must not be root', undefined) : user
  }

  const treasuryNodeId = text('TREASURY_NODE_ID')
  if (treasuryNodeId !== undefined && !isId('node', treasuryNodeId))
    fault('TREASURY_NODE_ID', 'must be the id of a node (node_…)', undefined)

  const operatorToken = secret('OPERATOR_TOKEN')
  if (operatorToken !== undefined && !/^[\x21-\x7e]{32,}$/.test(operatorToken))
    fault('OPERATOR_TOKEN', 'must be at least 32 printable ASCII characters without spaces', undefined)
  const metricsToken = secret('METRICS_TOKEN')
  if (metricsToken !== undefined && !/^[\x21-\x7e]+$/.test(metricsToken))
    fault('METRICS_TOKEN', 'must be printable ASCII characters without spaces', undefined)
  const metricsHost = text('METRICS_HOST') ?? '127.0.0.1'
  const metricsPort = integer('METRICS_PORT', 0, 1, 65_535)
  if (metricsPort !== 0 && !isLoopback(metricsHost) && metricsToken === undefined)
    warnings.push('METRICS_TOKEN is not set: everyone who can reach METRICS_HOST can read the metrics')
  const logLevel = text('LOG_LEVEL') ?? 'info'
  if (!LOG_LEVELS.includes(logLevel)) fault('LOG_LEVEL', `must be one of ${LOG_LEVELS.join(', ')}`, undefined)

  const traces = (endpoint: string | undefined): Config['traces'] => {
    const ratio = text('OTEL_TRACES_SAMPLER_ARG') ?? '1'
    if (!/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/.test(ratio))
      fault('OTEL_TRACES_SAMPLER_ARG', 'must be a number from 0 to 1, such as 0.05', 1)
    const headers = headersIn(secret('OTEL_EXPORTER_OTLP_HEADERS') ?? '')
    if (!headers)
      fault('OTEL_EXPORTER_OTLP_HEADERS', 'must be a list of name=value, separated by commas, with values as in a URL', {})
    if (endpoint === undefined || !headers) return undefined
    return { url: `${endpoint}/v1/traces`, headers, ratio: Number(ratio), serviceName: text('OTEL_SERVICE_NAME') ?? 'boltyard' }
  }

  const config: Config = {
    host,
    port,
    publicUrl,
    allowedHosts: allowedHosts(text('ALLOWED_HOSTS'), fault),
    isLocal,
    dataDir: resolve(text('DATA_DIR') ?? defaultDataDir(environment)),
    store: databaseUrl === undefined ? { kind: 'embedded' } : { kind: 'server', url: databaseUrl },
    redisUrl,
    masterKey,
    previousMasterKey: key('MASTER_KEY_PREVIOUS'),
    operator: operatorToken !== undefined ? { token: operatorToken } : isLocal ? 'generate' : 'off',
    rateLimit: {
      max: integer('RATE_LIMIT_MAX', 180, 1, 1_000_000_000),
      windowSeconds: integer('RATE_LIMIT_WINDOW_SECONDS', 60, 1, 86_400),
      gatewayMax: integer('GATEWAY_RATE_LIMIT_MAX', 6_000, 0, 1_000_000_000),
    },
    trustProxy: trustProxy(text('TRUST_PROXY'), fault),
    role,
    nodeDomain,
    nodeCallbackUrl: url('NODE_CALLBACK_URL') ?? `http://127.0.0.1:${port}`,
    software: software(),
    kubernetes: kubernetes(),
    registration: registration(),
    nodeUids: onKubernetes ? undefined : nodeUids(),
    postgresUser: postgresUser(),
    maxNodesPerAccount: integer('MAX_NODES_PER_ACCOUNT', 20, 1, 1_000_000),
    maxNodes: onKubernetes ? integer('MAX_NODES', 10_000, 1, 1_000_000) : integer('MAX_NODES', 200, 1, 9_000),
    nodePriceSatPerDay: integer('NODE_PRICE_SAT_PER_DAY', 100, 0, 1_000_000),
    creditGraceHours: integer('CREDIT_GRACE_HOURS', 48, 0, 8_760),
    treasury: treasuryNodeId === undefined && !isSandbox ? 'none' : { nodeId: treasuryNodeId },
    challengeLifetimeSeconds: integer('CHALLENGE_LIFETIME_SECONDS', 300, 1, 300),
    maxOpenChallenges: integer('MAX_OPEN_CHALLENGES', 10_000, 0, 1_000_000_000),
    l402LifetimeSeconds: integer('L402_LIFETIME_SECONDS', 86_400, 1, 315_360_000),
    provisionDeadlineMs: integer('PROVISION_DEADLINE_SECONDS', 300, 1, 86_400) * 1000,
    operationTimeoutMs: integer('OPERATION_TIMEOUT_SECONDS', 90, 1, 3_600) * 1000,
    retentionDays: integer('RETENTION_DAYS', 30, 1, 3_650),
    eventRetentionDays: integer('EVENT_RETENTION_DAYS', 30, 4, 3_650),
    webhookAllowPrivate: choice('WEBHOOK_ALLOW_PRIVATE', isLocal ? ['true', 'false'] : ['false', 'true']) === 'true',
    signupCreditSat: integer('SIGNUP_CREDIT_SAT', isSandbox ? 10_000 : 0, 0, 9_007_199_254),
    maxKeysPerAccount: integer('MAX_KEYS_PER_ACCOUNT', 50, 1, 1_000_000),
    metrics: metricsPort === 0 ? undefined : { host: metricsHost, port: metricsPort, token: metricsToken },
    traces: traces(url('OTEL_EXPORTER_OTLP_ENDPOINT')),
    logLevel,
    warnings,
  }
  if (faults.length > 0) throw new StartFault(78, ...faults)
  return config
}

/** The file with the operator's token. Null if the deployment configured a token or disabled the operator API. */
export const operatorTokenFile = ({ operator, dataDir }: Config): string | null =>
  operator === 'generate' ? join(dataDir, 'operator.token') : null

function defaultDataDir(environment: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return '/var/lib/boltyard'
  return join(environment.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'boltyard')
}

/** Names or addresses as in a URL, without a port: requests match whatever their port is. */
function allowedHosts(value: string | undefined, fault: (name: string, why: string, instead: string[]) => string[]): string[] {
  if (value === undefined) return []
  const names = value.split(',').map((name) => name.trim().toLowerCase())
  const isName = (name: string): boolean =>
    /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/.test(name) && URL.canParse(`http://${name}`)
  return names.every(isName) ? names : fault('ALLOWED_HOSTS', 'must be a list of host names or addresses, without ports', [])
}

/** A number of hops, or the proxies' addresses. Trusting everyone would let clients choose the address they are rate-limited by. */
function trustProxy(
  value: string | undefined,
  fault: (name: string, why: string, instead: false) => false,
): Config['trustProxy'] {
  if (value === undefined) return false
  if (/^\d{1,2}$/.test(value) && Number(value) > 0) return Number(value)
  const addresses = value.split(',').map((address) => address.trim())
  const good = addresses.every((address) => {
    const [ip = '', bits] = address.split('/')
    const version = isIP(ip)
    return (
      version !== 0 &&
      (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= (version === 4 ? 32 : 128)))
    )
  })
  return good ? addresses : fault('TRUST_PROXY', 'must be a number of hops (1 or more) or a list of addresses or networks', false)
}
