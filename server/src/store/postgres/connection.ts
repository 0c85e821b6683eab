import pg from 'pg'
import { StoreUnavailable } from './store-unavailable.ts'

export type StoreAddress = string | { host: string; port: number; user: string; password: string; database: string }

const CONNECT_TIMEOUT_MS = 5_000
const INT8: number = pg.types.builtins.INT8

/** int8 is parsed as a number: everything we count (including millisatoshis) stays below 2^53, and a larger value must not be rounded. */
function parseInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new Error('an integer from the database is too large')
  return value
}

const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary' ? parseInteger : pg.types.getTypeParser(oid, format),
}

/** A connection that records whether it has been lost. */
export class Connection extends pg.Client {
  #isLost = false

  constructor(address: StoreAddress) {
    super({
      ...(typeof address === 'string' ? { connectionString: address } : address),
      types,
      keepAlive: true,
      // Not set on the pool, where it would also limit how long a statement waits for a free connection.
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    })
    // Without a listener, losing the connection between two statements would end the process.
    this.on('error', () => {
      this.#isLost = true
    })
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /** Translates the error of a statement for the caller. */
  explain(error: unknown): unknown {
    // These codes mean that the server is closing the connection. The socket closes a moment later, and the next statement must not
    // be sent on it.
    this.#isLost ||= GOODBYES.has(codeOf(error) ?? '')
    return this.#isLost && codeOf(error) === undefined ? new StoreUnavailable(error) : explainConnect(error)
  }
}

/** SQLSTATE codes: admin_shutdown, crash_shutdown, cannot_connect_now */
const GOODBYES = new Set(['57P01', '57P02', '57P03'])
/** pg's messages for a failed or closed connection when the operating system gave no error code. */
const NO_CONNECTION = new Set(['timeout expired', 'Connection terminated unexpectedly', 'Connection terminated'])

export function explainConnect(error: unknown): unknown {
  return error instanceof Error && NO_CONNECTION.has(error.message) ? new StoreUnavailable(error) : error
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}
