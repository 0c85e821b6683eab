import { grouped, sats, satsOfMsat } from '../text/format.ts'
import { useUnit } from '../unit.ts'

export function Amount({ sat }: { sat: number }) {
  // Renders again when the unit changes, also in another tab.
  useUnit()
  return <Figure text={sats(sat)} />
}

export function MsatAmount({ msat }: { msat: number }) {
  useUnit()
  return <Figure text={satsOfMsat(msat)} />
}

function Figure({ text }: { text: string }) {
  const end = text.search(/\p{Zs}\p{L}+$/u)
  const [whole, fraction] = text.slice(0, end).split('.')
  return (
    <span className="amount">
      {whole}
      {fraction && (
        <>
          <span className="decimal-point">.</span>
          {fraction}
        </>
      )}
      <span className="unit">{text.slice(end)}</span>
    </span>
  )
}

export const Count = ({ of }: { of: number }) => <span className="amount">{grouped(of)}</span>
