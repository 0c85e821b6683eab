import { Skeleton, VisuallyHidden } from '@mantine/core'

/** `list`: rows, `chart`: bars, `card`: one or more cards with a title and lines. */
type Shape = 'card' | 'list' | 'chart'
type Props = { height: number; shape?: Shape; what?: string }

const GAP = 16
const CARD_HEIGHT = 260
const ROW_HEIGHT = 72
const LINE_HEIGHT = 30
const LINE_WIDTHS = ['88%', '64%', '76%', '52%']
const BAR_HEIGHTS = [34, 52, 28, 70, 46, 88, 60, 40, 76, 54, 92, 66]

/** Resembles the content it stands in for, and is as tall, so the layout does not shift. */
export function Loading({ height, shape = 'card', what = 'Loading' }: Props) {
  const count = shape === 'card' ? Math.max(1, Math.round((height + GAP) / (CARD_HEIGHT + GAP))) : 1
  return (
    <div aria-busy="true" className="loading" style={{ height }}>
      <VisuallyHidden>{what}</VisuallyHidden>
      {numbers(count).map((card) => (
        <div key={card} className="card">
          {shape === 'list' && <Rows count={Math.ceil(height / ROW_HEIGHT)} />}
          {shape === 'chart' && <Bars />}
          {shape === 'card' && <Lines count={Math.floor((height / count - 90) / LINE_HEIGHT)} />}
        </div>
      ))}
    </div>
  )
}

const Lines = ({ count }: { count: number }) => (
  <>
    <Skeleton height={16} width={140} mb={LINE_HEIGHT - 14} />
    {numbers(Math.max(1, count)).map((line) => (
      <Skeleton key={line} height={10} width={LINE_WIDTHS[line % LINE_WIDTHS.length]} mb={LINE_HEIGHT - 10} />
    ))}
  </>
)

const Rows = ({ count }: { count: number }) => (
  <>
    {numbers(count).map((row) => (
      <div key={row} className="loading-row">
        <div className="row-main">
          <Skeleton height={14} width="40%" mb={10} />
          <Skeleton height={10} width="64%" />
        </div>
        <Skeleton height={20} width={80} />
      </div>
    ))}
  </>
)

const Bars = () => (
  <div className="loading-bars">
    {BAR_HEIGHTS.map((percent) => (
      <Skeleton key={percent} height={`${percent}%`} radius={4} />
    ))}
  </div>
)

const numbers = (count: number): number[] => Array.from({ length: count }, (_, place) => place)
