const NOUNS = { accounts: 'account', nodes: 'node', gateway_payments: 'payment' }

/** What an operator recognizes a backup by: `1 account, 2 nodes, 17 payments`. */
export function summaryOf(rows: Record<string, number>): string {
  const counts = Object.entries(NOUNS).map(([table, noun]) => ({ count: rows[table] ?? 0, noun }))
  return counts.map(({ count, noun }) => `${count} ${noun}${count === 1 ? '' : 's'}`).join(', ')
}
