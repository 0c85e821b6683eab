/** The connection is gone, or there was none. Whether a statement that was under way took effect is not known. */
export class StoreUnavailable extends Error {
  readonly code = 'STORE_UNAVAILABLE'

  constructor(cause: unknown) {
    super('no connection to PostgreSQL', { cause })
  }
}
