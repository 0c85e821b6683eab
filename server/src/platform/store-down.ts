const DOWN_CODES = new Set([
  'STORE_UNAVAILABLE',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  // SQLSTATE codes: admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections, disk_full, read_only_sql_transaction,
  // out_of_memory, io_error, undefined_file (PostgreSQL's own files were moved or replaced while it ran)
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '53100',
  '25006',
  '53200',
  '58030',
  '58P01',
])

/**
 * Whether the store failed for a reason that has nothing to do with the request. The response is then a 503, so that the client retries.
 */
export function isStoreDown(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && DOWN_CODES.has(code)
}
