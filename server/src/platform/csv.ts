/** RFC 4180. */
export function csvLineOf(values: (string | number | null)[]): string {
  return `${values.map((value) => (typeof value === 'string' ? quoted(value) : (value ?? ''))).join(',')}\r\n`
}

export const csvTime = (seconds: number | null): string | null =>
  seconds === null ? null : new Date(seconds * 1000).toISOString()

/**
 * Spreadsheets run a cell that begins like a formula, and strangers can influence some texts, so an apostrophe marks such a cell as text.
 * In many countries, spreadsheets also split lines at semicolons, so a cell may begin after a semicolon or tab, or with a quote in it.
 */
function quoted(text: string): string {
  const safe = text.replace(/(^|[;\t])("*)(?=[=+\-@])/g, "$1'$2").replace(/^[\t\r]/, "'$&")
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
