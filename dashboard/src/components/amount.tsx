import { grouped, sats, satsOfMsat } from '../text/format.ts'
import { useUnit } from '../unit.ts'

export function Amount({ sat }: { sat: number }) {
  // Renders again when the unit changes, also in another tab.
  useUnit()
  return <span className="amount">{sats(sat)}</span>
}

export function MsatAmount({ msat }: { msat: number }) {
  useUnit()
  return <span className="amount">{satsOfMsat(msat)}</span>
}

export const Count = ({ of }: { of: number }) => <span className="amount">{grouped(of)}</span>
