/** Millisatoshi in one of the unit that the letter names; without a letter the unit is a whole bitcoin. */
const MSAT: Record<string, number> = { '': 100_000_000_000, m: 100_000_000, u: 100_000, n: 100, p: 0.1 }

/**
 * The amount that an invoice asks for: null when it leaves it to the payer, undefined when this is no invoice. Only the readable start of
 * it is looked at; whether the rest is right is the node's to say.
 */
export function invoiceAmountSat(text: string): number | null | undefined {
  const match = /^(?:lightning:)?ln(?:bcrt|bc|tbs|tb)(?:(\d+)([munp]?))?1[02-9ac-hj-np-z]{40,}$/i.exec(text.trim())
  if (!match) return undefined
  const [, digits, unit] = match
  if (digits === undefined) return null
  return Math.ceil((Number(digits) * (MSAT[(unit ?? '').toLowerCase()] ?? 0)) / 1000)
}

/** As the node takes it: without the scheme that wallets put before it. */
export const bareInvoice = (text: string): string =>
  text
    .trim()
    .replace(/^lightning:/i, '')
    .toLowerCase()
