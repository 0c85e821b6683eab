import postgres from 'postgres'

export type Sql = postgres.Sql<{ bigint: number }>
/** A piece of a statement. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>

/** int8 arrives as a number: everything we count (millisatoshi included) stays below 2^53, and what does not must not be rounded. */
function parseInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new Error('an integer of the database is too large')
  return value
}

const OPTIONS: postgres.Options<{ bigint: postgres.PostgresType<number> }> = {
  // Twice as many only wait for one another: fewer first validations a second on two cores, and a longer tail.
  max: 10,
  idle_timeout: 60,
  connect_timeout: 5,
  // Seconds. The client's own grows to 20, and every request would wait that long for its 503, also when the store is back.
  backoff: () => 0.25,
  onnotice: () => undefined,
  types: { bigint: { to: 20, from: [20], serialize: (value: number) => String(value), parse: parseInteger } },
}

export type StoreAddress = string | { host: string; port: number; user: string; password: string; database: string }

export function openStore(address: StoreAddress, max = OPTIONS.max): Sql {
  const options = { ...OPTIONS, ...(max === undefined ? {} : { max }) }
  return typeof address === 'string' ? postgres(address, options) : postgres({ ...address, ...options })
}

const CONNECTION_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  // admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections, disk_full, read_only_sql_transaction
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '53100',
  '25006',
])

/** The store could not do its work, whatever was asked of it: 503, and worth repeating. */
export function isStoreDown(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && CONNECTION_CODES.has(code)
}
