import { homedir } from 'node:os'
import { join } from 'node:path'
import { type ConfFile, readConf } from './conf-file.ts'
import { StartFault } from './start-fault.ts'

/** phoenixd's version ends with a seven-character commit hash. This one ends with "sandbox" instead. */
export const VERSION = '0.8.0-sandbox'

type Spec = {
  /** The placeholder after "=" in the help; absent for a flag. */
  value?: string
  help?: string
  default?: string
  liquidity?: true
  /** Returns what is wrong with the value, or undefined. */
  check?: (value: string) => string | undefined
}

const choice = (...values: string[]): Spec => ({
  value: `(${values.join('|')})`,
  check: (value) => (values.includes(value) ? undefined : `invalid choice: ${value}. (choose from ${values.join(', ')})`),
})
const integer = (min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER, unit = ''): Spec => ({
  value: '<int>',
  check: (value) => {
    if (!/^[+-]?\d+$/.test(value) || !Number.isSafeInteger(Number(value))) return `${value} is not a valid integer`
    return Number(value) < min || Number(value) > max
      ? `${value}${unit} is not in the valid range of ${min}${unit} to ${max}${unit}.`
      : undefined
  },
})
const text: Spec = { value: '<text>' }

/** All options of phoenixd 0.8.0, with its value checks. Options without a help text are hidden in phoenixd, too. */
const SPECS: Record<string, Spec> = {
  'agree-to-terms-of-service': {},
  chain: { ...choice('regtest'), help: 'Bitcoin chain to use', default: 'regtest' },
  'mempool-space-url': { ...text, help: 'Custom mempool.space instance (no effect in the sandbox)' },
  'mempool-space-polling-interval-minutes': integer(),
  'http-bind-ip': { ...text, help: 'Bind ip for the http api', default: '127.0.0.1' },
  'http-bind-port': { ...integer(), help: 'Bind port for the http api', default: '9740' },
  'http-password': { ...text, help: 'Password for the http api (full access)' },
  'http-password-limited-access': { ...text, help: 'Password for the http api (limited access)' },
  webhook: { ...text, help: 'Webhook http endpoint for push notifications (alternative to websocket)' },
  'webhook-secret': { ...text, help: 'Secret used to authenticate webhook calls' },
  seed: text,
  'seed-path': { ...text, help: 'Path to the seed file' },
  'log-rotate-size': { ...integer(1), help: 'Log rotate size in MB', default: '10' },
  'log-rotate-max-files': { ...integer(1), help: 'Maximum number of log files kept', default: '5' },
  silent: { help: 'Print nothing to the console' },
  verbose: { help: 'Print logs to the console' },
  'auto-liquidity': {
    ...choice('off', '2m', '5m', '10m'),
    help: 'Amount automatically requested when inbound liquidity is needed',
    default: '2m',
    liquidity: true,
  },
  'max-absolute-fee': { ...text, check: () => 'deprecated' },
  'max-mining-fee': {
    ...integer(5_000, 200_000, ' sat'),
    help: 'Max mining fee for on-chain operations, in satoshis',
    default: '1% of auto-liquidity amount',
    liquidity: true,
  },
  'max-fee-credit': {
    ...choice('off', '50k', '125k', '250k'),
    help: 'Max fee credit, if reached payments will be rejected',
    default: '2.5% of auto-liquidity amount',
    liquidity: true,
  },
  'max-relative-fee-percent': integer(1, 50),
}

/** Read only from phoenix.conf: secrets must not be on a command line, and phoenixd ignores unknown keys in the file. */
const SANDBOX_CONF_KEYS = [
  'sandbox-hub',
  'sandbox-control',
  'sandbox-control-token',
  'sandbox-callback',
  'sandbox-webhook-loopback',
  'sandbox-peer',
] as const

export type HubAddress = { host: string; port: number; token: string }

export type Options = {
  dataDir: string
  confPath: string
  agreed: boolean
  seedWords: string | undefined
  seedPath: string
  bindIp: string
  bindPort: number
  httpPassword: string | undefined
  limitedPassword: string | undefined
  webhookSecret: string | undefined
  webhooks: string[]
  verbosity: 'default' | 'silent' | 'verbose'
  logRotateBytes: number
  logRotateMaxFiles: number
  autoLiquiditySat: number
  maxMiningFeeSat: number
  maxFeeCreditSat: number
  maxRelativeFeePercent: number
  hub: HubAddress | undefined
  controlBind: { host: string; port: number }
  controlToken: string | undefined
  callbackOrigin: string | undefined
  webhooksToLoopback: boolean
  peerUpAtFirst: boolean
}

export class UsageError extends StartFault {
  constructor(message: string) {
    super(`Usage: sandboxd [<options>]\n\nError: ${message}`)
  }
}

function readArguments(args: string[]): ConfFile {
  const given: ConfFile = new Map()
  for (let at = 0; at < args.length; at++) {
    const argument = args[at] ?? ''
    const match = /^--([a-z-]+)(?:=([\s\S]*))?$/.exec(argument)
    const name = match?.[1] ?? ''
    const spec = Object.hasOwn(SPECS, name) ? SPECS[name] : undefined
    if (!match || !spec)
      throw new UsageError(
        argument.startsWith('-') ? `no such option ${argument.split('=')[0]}` : `got unexpected extra argument (${argument})`,
      )
    let value = match[2]
    if (!spec.value) {
      if (value !== undefined) throw new UsageError(`option --${name} does not take a value`)
      value = 'true'
    } else if (value === undefined) {
      value = args[++at]
      if (value === undefined) throw new UsageError(`option --${name} requires a value`)
    }
    given.set(name, [...(given.get(name) ?? []), value])
  }
  return given
}

/** Like phoenixd's, the error message names the option only if the value came from the command line. */
function checkValues(values: ConfFile, isFile: boolean): void {
  if (values.has('max-absolute-fee')) throw new StartFault('--max-absolute-fee is deprecated, use --max-mining-fee instead')
  for (const [name, list] of values) {
    for (const value of list) {
      const wrong = SPECS[name]?.check?.(value)
      if (wrong) throw new UsageError(`invalid value${isFile ? '' : ` for --${name}`}: ${wrong}`)
    }
  }
}

function hostAndPort(name: string, value: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:@]+)):(\d{1,5})$/.exec(value)
  const port = Number(match?.[3])
  if (!match || port > 65_535) throw new UsageError(`invalid value for ${name}: host:port expected`)
  return { host: match[1] ?? match[2] ?? '', port }
}

function hubAddress(value: string): HubAddress {
  const at = value.lastIndexOf('@')
  if (at < 1) throw new UsageError('invalid value for sandbox-hub: token@host:port expected')
  return { token: value.slice(0, at), ...hostAndPort('sandbox-hub', value.slice(at + 1)) }
}

function originOf(value: string): string {
  if (!URL.canParse(value)) throw new UsageError('invalid value for sandbox-callback: url expected')
  return new URL(value).origin
}

const SAT: Record<string, number> = {
  off: 0,
  '2m': 2_000_000,
  '5m': 5_000_000,
  '10m': 10_000_000,
  '50k': 50_000,
  '125k': 125_000,
  '250k': 250_000,
}

export function dataDirOf(environment: NodeJS.ProcessEnv): string {
  return environment.PHOENIX_DATADIR || join(homedir(), '.phoenix')
}

/** The command line overrides phoenix.conf. If a key is repeated, the last line counts, except that all webhooks are used. */
export function readOptions(args: string[], environment: NodeJS.ProcessEnv): Options {
  const dataDir = dataDirOf(environment)
  const confPath = join(dataDir, 'phoenix.conf')
  const given = readArguments(args)
  const conf = readConf(confPath)
  checkValues(given, false)
  // If an option is on the command line, its value in the file is not checked, because it has no effect.
  checkValues(new Map([...conf].filter(([name]) => Object.hasOwn(SPECS, name) && !given.has(name))), true)
  const last = (name: string): string | undefined => (given.get(name) ?? conf.get(name))?.at(-1)
  const or = (name: string): string => last(name) ?? SPECS[name]?.default ?? ''
  const flag = (name: string): boolean => last(name) === 'true'
  const sandbox = (name: (typeof SANDBOX_CONF_KEYS)[number]): string | undefined => conf.get(name)?.at(-1)
  const hub = sandbox('sandbox-hub')
  const callback = sandbox('sandbox-callback')
  const peer = sandbox('sandbox-peer') ?? 'up'
  if (peer !== 'up' && peer !== 'down') throw new UsageError('invalid value for sandbox-peer: up or down expected')
  const seedWords = last('seed') ?? environment.PHOENIX_SEED
  if (seedWords !== undefined && last('seed-path') !== undefined)
    throw new UsageError('option --seed cannot be used with --seed-path')
  const autoLiquiditySat = SAT[or('auto-liquidity')] ?? 0
  const maxFeeCredit = last('max-fee-credit')
  return {
    dataDir,
    confPath,
    agreed: flag('agree-to-terms-of-service'),
    seedWords,
    seedPath: last('seed-path') ?? join(dataDir, 'seed.dat'),
    bindIp: or('http-bind-ip'),
    bindPort: Number(or('http-bind-port')),
    httpPassword: last('http-password'),
    limitedPassword: last('http-password-limited-access'),
    webhookSecret: last('webhook-secret'),
    webhooks: given.get('webhook') ?? conf.get('webhook') ?? [],
    // phoenixd does not read `silent` from the file.
    verbosity: given.has('silent') ? 'silent' : flag('verbose') ? 'verbose' : 'default',
    logRotateBytes: Number(or('log-rotate-size')) * 1_000_000,
    logRotateMaxFiles: Number(or('log-rotate-max-files')),
    autoLiquiditySat,
    maxMiningFeeSat: Number(last('max-mining-fee') ?? autoLiquiditySat / 100),
    maxFeeCreditSat: maxFeeCredit === undefined ? autoLiquiditySat / 40 : (SAT[maxFeeCredit] ?? 0),
    maxRelativeFeePercent: Number(last('max-relative-fee-percent') ?? 30),
    hub: hub === undefined ? undefined : hubAddress(hub),
    controlBind: hostAndPort('sandbox-control', sandbox('sandbox-control') ?? '127.0.0.1:0'),
    controlToken: sandbox('sandbox-control-token'),
    callbackOrigin: callback === undefined ? undefined : originOf(callback),
    webhooksToLoopback: sandbox('sandbox-webhook-loopback') === 'true',
    peerUpAtFirst: peer === 'up',
  }
}

export function helpText(): string {
  const rows = (liquidity: boolean): [string, string][] =>
    Object.entries(SPECS)
      .filter(([, spec]) => spec.help && Boolean(spec.liquidity) === liquidity)
      .map(([name, spec]) => [
        `--${name}${spec.value ? `=${spec.value}` : ''}`,
        `${spec.help}${spec.default ? ` (default: ${spec.default})` : ''}`,
      ])
  const all = [...rows(true), ...rows(false)]
  const width = Math.max(...all.map(([name]) => name.length)) + 2
  const print = (list: [string, string][]): string => list.map(([name, help]) => `  ${name.padEnd(width)}${help}`).join('\n')
  return `Usage: sandboxd [<options>]
       sandboxd hub [<options>]

A Lightning node for development: phoenixd's API, files and flags, no real money.

Liquidity Options:
${print(rows(true))}

Options:
${print([...rows(false), ['-v, --version', 'Show the version and exit'], ['-h, --help', 'Show this message and exit']])}

Environment: PHOENIX_DATADIR (default ~/.phoenix), PHOENIX_SEED.
Only in <datadir>/phoenix.conf: sandbox-hub=<token>@<host>:<port>, sandbox-control=<host>:<port>,
  sandbox-control-token=<text>, sandbox-callback=<url>, sandbox-webhook-loopback=true,
  sandbox-peer=(up|down).
`
}
