import type { AccountEvent } from '../../../sdk/src/index.ts'
import { sanitize, sat } from '../terminal.ts'

/** As long as the longest type, so that lines which are printed one by one form columns. */
const TYPE_WIDTH = 'credit.exhausted'.length

export const timeOf = ({ createdAt }: AccountEvent): string => new Date(createdAt * 1000).toISOString().replace('.000', '')

/** What the event is about, in a few words: the price and description of a payment, or the name of a node. */
export function subjectOf({ data }: AccountEvent): string {
  const { amountSat, description, name, nodeId } = data
  const words = [typeof amountSat === 'number' ? sat(amountSat) : '', description ?? name ?? nodeId ?? '']
  return sanitize(words.filter((word) => word !== '').join('  '))
}

export const lineOf = (event: AccountEvent, result: string): string =>
  `${timeOf(event)}  ${sanitize(event.type).padEnd(TYPE_WIDTH)}  ${sanitize(event.id)}  ${result}`.trimEnd().concat('\n')
