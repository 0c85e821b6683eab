/** RFC 4180. */
export function csvLineOf(values: (string | number | null)[]): string {
  return `${values.map((value) => (typeof value === 'string' ? quoted(value) : (value ?? ''))).join(',')}\r\n`
}

export const csvTime = (seconds: number | null): string | null =>
  seconds === null ? null : new Date(seconds * 1000).toISOString()

/**
 * A spreadsheet runs text that begins like a formula, and other people can influence some texts. The apostrophe makes it text. In many
 * countries, spreadsheets split lines at semicolons, so a cell may begin after one, also with the quotes that are part of the text.
 */
function quoted(text: string): string {
  const safe = text.replace(/(^|[;\t])("*)(?=[=+\-@])/g, "$1'$2").replace(/^[\t\r]/, "'$&")
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
