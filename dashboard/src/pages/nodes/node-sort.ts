import type { DashboardNode } from '../../api/types.ts'

/** The columns to sort by, and whether the first click on the header shows the largest first. */
export const NODE_COLUMNS = { name: false, balance: true, received: true, created: true } as const
export type NodeColumn = keyof typeof NODE_COLUMNS
/** With a minus sign: the largest first. */
export type NodeOrder = NodeColumn | `-${NodeColumn}`
/** The order in which the service lists them. */
const DEFAULT: NodeOrder = 'created'

export const NODE_ORDERS = (Object.keys(NODE_COLUMNS) as NodeColumn[]).flatMap((column): NodeOrder[] => [column, `-${column}`])

const isDescending = (order: NodeOrder): boolean => order.startsWith('-')

/** For `aria-sort`. Undefined: sorted by another column. */
export function directionOf(column: NodeColumn, order: NodeOrder = DEFAULT): 'ascending' | 'descending' | undefined {
  if (order === column) return 'ascending'
  return order === `-${column}` ? 'descending' : undefined
}

/** What a click on the header of this column changes the order to. */
export function orderAfterClick(column: NodeColumn, order: NodeOrder = DEFAULT): NodeOrder {
  const direction = directionOf(column, order)
  const descends = direction === undefined ? NODE_COLUMNS[column] : direction === 'ascending'
  return descends ? `-${column}` : column
}

type Sorted = Pick<DashboardNode, 'id' | 'name' | 'balanceSat' | 'createdAt'>
const NAMES = new Intl.Collator(undefined, { numeric: true })

/** Nodes with equal values keep their order. Unknown balances are last in both directions. */
export function sortedNodes<N extends Sorted>(
  nodes: N[],
  order: NodeOrder | undefined,
  receivedBy: Map<string, number> | undefined,
): N[] {
  if (order === undefined) return nodes
  const sign = isDescending(order) ? -1 : 1
  if (directionOf('name', order)) return [...nodes].sort((one, other) => sign * NAMES.compare(one.name, other.name))
  const valueIn = ({ id, balanceSat, createdAt }: Sorted): number | null =>
    directionOf('balance', order) ? balanceSat : directionOf('created', order) ? createdAt : (receivedBy?.get(id) ?? 0)
  return [...nodes].sort((a, b) => {
    const [one, other] = [valueIn(a), valueIn(b)]
    if (one === null || other === null) return Number(one === null) - Number(other === null)
    return sign * (one - other)
  })
}
