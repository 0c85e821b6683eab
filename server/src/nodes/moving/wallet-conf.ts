import type { NodeMaterial } from '../runtime.ts'

/** What a node keeps of phoenixd's own configuration. */
export type WalletConf = {
  chain: string | undefined
  autoLiquidity: string | undefined
  password: string | undefined
  restrictedPassword: string | undefined
  webhookSecret: string | undefined
  /** Names of settings that have an effect in phoenixd and none in a node. */
  notKept: string[]
}

/** phoenixd also has `off`, with which a node could not receive its first payment. */
const AUTO_LIQUIDITY = ['2m', '5m', '10m']
/** phoenixd by itself listens only on loopback, where a short password may do, but anyone can reach the API of a node. */
const MIN_SECRET_LENGTH = 16
const NOT_KEPT = [
  'webhook',
  'max-mining-fee',
  'max-fee-credit',
  'max-relative-fee-percent',
  'mempool-space-url',
  'mempool-space-polling-interval-minutes',
  'electrum-server',
]

/** Parsed as phoenixd does: the name is before the first "=", the value after the last. Errors never quote a value: it may be a secret. */
export function parseConf(text: string, refuse: (what: string) => never): WalletConf {
  const values = new Map<string, string>()
  for (const line of text.split(/\r?\n/))
    if (line.includes('=')) values.set(line.slice(0, line.indexOf('=')), line.slice(line.lastIndexOf('=') + 1))
  if (values.has('seed') || values.has('seed-path')) refuse('that names another seed; put its words into seed.dat')
  const secret = (name: string): string | undefined => {
    const value = values.get(name)
    if (value === undefined || value === '') return undefined
    if (!/^[\x21-\x7e]{1,256}$/.test(value))
      refuse(`with a ${name} that cannot be sent in a request; use up to 256 ASCII characters without spaces`)
    return value.length >= MIN_SECRET_LENGTH
      ? value
      : refuse(`with a ${name} of less than ${MIN_SECRET_LENGTH} characters; change it`)
  }
  const [password, restrictedPassword] = [secret('http-password'), secret('http-password-limited-access')]
  if (password !== undefined && password === restrictedPassword)
    refuse('with the same password for full and for limited access; change one of them')
  const autoLiquidity = values.get('auto-liquidity')
  if (autoLiquidity !== undefined && !AUTO_LIQUIDITY.includes(autoLiquidity))
    refuse('with an auto-liquidity that nodes do not support; change it to 2m, 5m or 10m')
  return {
    chain: values.get('chain'),
    autoLiquidity,
    password,
    restrictedPassword,
    webhookSecret: secret('webhook-secret'),
    notKept: NOT_KEPT.filter((name) => values.has(name)),
  }
}

/** What `parseConf` keeps, for a node that has not been started yet. The first start writes the whole configuration. */
export function confText(autoLiquidity: string, { password, restrictedPassword, webhookSecret }: NodeMaterial): string {
  const lines = [
    `http-password=${password}`,
    `http-password-limited-access=${restrictedPassword}`,
    `webhook-secret=${webhookSecret}`,
    `auto-liquidity=${autoLiquidity}`,
  ]
  return `${lines.join('\n')}\n`
}
