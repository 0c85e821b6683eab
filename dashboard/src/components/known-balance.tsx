import type { DashboardNode } from '../api/types.ts'
import { Amount } from './amount.tsx'
import { Time, useNow } from './time.tsx'

/** The service asks each node for its balance at least every ten minutes. */
const FRESH_SECONDS = 900

/** The last balance that the node reported, with its time unless it is current. */
export function KnownBalance({
  node,
}: {
  node: Pick<DashboardNode, 'status' | 'isSilent' | 'balanceSat' | 'balanceAt' | 'isBalanceOutdated'>
}) {
  const now = useNow(60)
  const { status, isSilent, balanceSat, balanceAt, isBalanceOutdated } = node
  if (balanceSat === null || balanceAt === null) return <span className="dim">unknown</span>
  const isCurrent = status === 'ready' && !isSilent && now - balanceAt < FRESH_SECONDS
  return (
    <>
      <Amount sat={balanceSat} />
      {isBalanceOutdated ? (
        <div className="small dim">before the latest payment</div>
      ) : (
        !isCurrent && (
          <div className="small dim">
            <Time at={balanceAt} />
          </div>
        )
      )}
    </>
  )
}
