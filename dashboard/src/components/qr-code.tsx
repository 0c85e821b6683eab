import { useMemo } from 'react'
import { encode } from 'uqr'

/**
 * Black on white in both themes, because many wallets cannot read inverted codes. Upper case makes the code of a bech32 invoice
 * smaller; other texts need `keepsCase`.
 */
export function QrCode({ text, label, keepsCase = false }: { text: string; label: string; keepsCase?: boolean }) {
  const { path, size } = useMemo(() => {
    const { data, size } = encode(keepsCase ? text : text.toUpperCase(), { ecc: 'L', border: 3 })
    let path = ''
    data.forEach((row, y) => {
      row.forEach((isDark, x) => {
        if (isDark) path += `M${x} ${y}h1v1h-1z`
      })
    })
    return { path, size }
  }, [text, keepsCase])
  return (
    <svg
      className="qr"
      viewBox={`0 0 ${size} ${size}`}
      width={260}
      height={260}
      shapeRendering="crispEdges"
      role="img"
      aria-label={label}
    >
      <path d={path} />
    </svg>
  )
}
