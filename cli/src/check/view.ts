import { invoiceExpiresAtSeconds } from '../../../protocol/src/bolt11.ts'
import type { Paint } from '../terminal.ts'
import { price } from './dialects/offer.ts'
import type { DiscoveryDocument } from './discovery/discovery.ts'
import { type Finding, type Findings, quoted } from './findings.ts'
import type { CheckedOperation } from './operation-check.ts'
import type { Purchase } from './purchase.ts'

export type Report = {
  url: string
  documents: DiscoveryDocument[]
  checked: CheckedOperation[]
  findings: Findings
  purchases: Purchase[]
}

/** Scripts rely on this shape. */
export function documentOf({ url, documents, checked, findings, purchases }: Report): object {
  return {
    url: quoted(url),
    discovery: documents,
    operations: checked.map(({ operation, status, offers }) => ({
      operation: quoted(operation.name),
      url: quoted(operation.url.href),
      status,
      offers: offers.map(({ protocol, amountMsat, invoice }) => ({
        protocol,
        amountSat: amountMsat / 1000,
        network: invoice.network,
        expiresAt: invoiceExpiresAtSeconds(invoice),
      })),
    })),
    purchases: purchases.map((purchase) => ({ ...purchase, operation: quoted(purchase.operation) })),
    skipped: findings.skipped,
    findings: findings.list,
  }
}

/** Grouped by operation, errors first. */
export function forPeople({ documents, checked, findings, purchases }: Report, paint: Paint): string {
  const names = new Set([
    ...checked.map(({ operation }) => quoted(operation.name)),
    ...findings.list.map(({ operation }) => operation),
  ])
  const found = documents.filter(({ status }) => status === 'found').map(({ path }) => path)
  const lines = [paint('dim', `Discovery: ${found.length === 0 ? 'none' : found.join(', ')}`)]
  for (const name of names) {
    const one = checked.find(({ operation }) => quoted(operation.name) === name)
    const bought = purchases
      .filter(({ operation }) => quoted(operation) === name)
      .map(({ protocol, deliveries }) => `bought over ${protocol}, delivered ${deliveries}×`)
    const said = [...(one ? [summaryOf(one)] : []), ...bought].join('; ')
    const own = findings.list.filter(({ operation }) => operation === name)
    const mark = own.length === 0 ? paint('green', '✓') : paint(own.some(isError) ? 'red' : 'yellow', '✗')
    lines.push('', `${mark} ${paint('bold', name)}${said === '' ? '' : `  ${paint('dim', said)}`}`)
    lines.push(
      ...[...own.filter(isError), ...own.filter((finding) => !isError(finding))].flatMap((finding) =>
        findingLines(finding, paint),
      ),
    )
  }
  if (findings.skipped.length > 0)
    lines.push('', paint('bold', 'Skipped'), ...findings.skipped.map(({ operation, reason }) => `  ${operation}: ${reason}`))
  return `${lines.join('\n')}\n`
}

const isError = ({ severity }: Finding): boolean => severity === 'error'

function summaryOf({ status, offers }: CheckedOperation): string {
  if (offers.length === 0) return `HTTP ${status}`
  return offers.map(({ protocol, amountMsat }) => `${protocol} ${price(amountMsat)}`).join(', ')
}

function findingLines({ id, severity, seen, expected, fix }: Finding, paint: Paint): string[] {
  const label = paint(severity === 'error' ? 'red' : 'yellow', severity.padEnd(8))
  return [`  ${label} ${paint('bold', id)}: ${seen}`, `           expected ${expected}`, `           ${paint('dim', fix)}`]
}
