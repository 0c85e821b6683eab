/** The connection was lost or could not be made. Whether a running statement took effect is unknown. */
export class StoreUnavailable extends Error {
  readonly code = 'STORE_UNAVAILABLE'

  constructor(cause: unknown) {
    super('no connection to PostgreSQL', { cause })
  }
}
