import 'uplot/dist/uPlot.min.css'
import { useComputedColorScheme } from '@mantine/core'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import { bucketName, grouped, sats } from '../text/format.ts'
import { ENGLISH, LOCALES } from '../text/locales.ts'
import { useUnit } from '../unit.ts'

type Props = { points: { at: number; sat: number }[]; unit: 'hour' | 'day'; label: string }

export const CHART_HEIGHT = 220
const MOST_LABELS = 8
/** "09:00 PM", and some space. */
const LABEL_WIDTH = 90

const HOUR = new Intl.DateTimeFormat(LOCALES, { hour: '2-digit', minute: '2-digit' })
const DAY = new Intl.DateTimeFormat(ENGLISH, { weekday: 'short', day: 'numeric' })
const DATE = new Intl.DateTimeFormat(ENGLISH, { day: 'numeric', month: 'short' })
/** The labels of the vertical axis. Satoshis have no unit there: "12 000". */
const AMOUNTS = { sat: { format: grouped, width: 64 }, btc: { format: sats, width: 112 } } as const
const NEXT: Record<string, (place: number, count: number) => number> = {
  ArrowLeft: (place) => place - 1,
  ArrowRight: (place) => place + 1,
  Home: () => 0,
  End: (_, count) => count - 1,
}

/**
 * A bar chart on a canvas. Screen readers cannot read it, so the caller adds a table. The arrow keys read out one bar after
 * another.
 */
export default function Chart({ points, unit, label }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const tip = useRef<HTMLDivElement>(null)
  const drawn = useRef<uPlot | null>(null)
  const [place, setPlace] = useState<number | null>(null)
  const scheme = useComputedColorScheme('light', { getInitialValueInEffect: false })
  const amounts = AMOUNTS[useUnit()]

  // biome-ignore lint/correctness/useExhaustiveDependencies: a canvas does not follow CSS colors, so a theme change must redraw it
  useEffect(() => {
    const host = box.current
    if (!host) return
    const style = getComputedStyle(document.documentElement)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const format = unit === 'hour' ? HOUR : points.length > 7 ? DATE : DAY
    const highest = Math.max(1, ...points.map(({ sat }) => sat))
    const axis = {
      stroke: colour('--mantine-color-dimmed'),
      font: `12px ${colour('--mantine-font-family')}`,
      ticks: { show: false },
    }
    const last = points.at(-1)
    const labelWidth = last ? widthOf(format.format(last.at * 1000), axis.font) : 0
    const plot = new uPlot(
      {
        width: host.clientWidth,
        height: CHART_HEIGHT,
        padding: [12, (self) => spaceForLast(labelWidth, points.length, self.width - amounts.width), 0, 0],
        cursor: { y: false, x: false, drag: { x: false, y: false }, points: { show: false } },
        legend: { show: false },
        scales: { x: { time: false, range: [-0.6, points.length - 0.4] }, y: { range: [0, highest * 1.1] } },
        series: [{}, { fill: colour('--accent'), width: 0, points: { show: false }, paths: barPaths }],
        hooks: { setCursor: [(self) => setPlace(self.cursor.idx ?? null)] },
        axes: [
          {
            ...axis,
            size: 28,
            grid: { show: false },
            splits: (self) => everyNth(points.length, Math.min(MOST_LABELS, Math.floor(self.width / LABEL_WIDTH))),
            values: (_, places) => places.map((one) => (points[one] ? format.format(points[one].at * 1000) : '')),
          },
          {
            ...axis,
            size: amounts.width,
            grid: { stroke: colour('--line'), width: 1 },
            incrs: [1, 2, 5]
              .flatMap((digit) => Array.from({ length: 12 }, (_, power) => digit * 10 ** power))
              .sort((a, b) => a - b),
            values: (_, sizes) => sizes.map(amounts.format),
          },
        ],
      },
      [points.map((_, one) => one), points.map(({ sat }) => sat)],
      host,
    )
    drawn.current = plot
    const observer = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height: CHART_HEIGHT }))
    observer.observe(host)
    return () => {
      observer.disconnect()
      plot.destroy()
      drawn.current = null
    }
  }, [points, unit, scheme, amounts])

  const point = place === null ? undefined : points[place]
  // The position is set by script, which the Content-Security-Policy allows. The tip stays inside the chart.
  useEffect(() => {
    const [plot, element, host] = [drawn.current, tip.current, box.current]
    if (!plot || !element || !host || !point || place === null) return
    const scale = window.devicePixelRatio
    const middle = plot.bbox.left / scale + plot.valToPos(place, 'x')
    const half = element.offsetWidth / 2
    element.style.left = `${Math.min(Math.max(middle, half), host.clientWidth - half)}px`
    element.style.top = `${Math.max(0, plot.bbox.top / scale + plot.valToPos(point.sat, 'y') - element.offsetHeight - 6)}px`
  }, [point, place])

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') return setPlace(null)
    const move = NEXT[event.key]
    if (!move) return
    event.preventDefault()
    const last = points.length - 1
    setPlace((now) => (now === null ? last : Math.min(Math.max(move(now, points.length), 0), last)))
  }
  return (
    <div
      className="chart"
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={points.length - 1}
      aria-valuenow={place ?? points.length - 1}
      aria-valuetext={textOf(point ?? points.at(-1), unit)}
      aria-readonly="true"
      onKeyDown={onKeyDown}
      onFocus={(event) => event.currentTarget.matches(':focus-visible') && setPlace(points.length - 1)}
      onBlur={() => setPlace(null)}
      onMouseLeave={() => setPlace(null)}
    >
      <div ref={box} aria-hidden="true" />
      {point && (
        <div ref={tip} className="chart-tip" data-testid="chart-tip" aria-hidden="true">
          <strong>{sats(point.sat)}</strong>
          <span>{bucketName(point.at, unit)}</span>
        </div>
      )}
    </div>
  )
}

const textOf = (point: { at: number; sat: number } | undefined, unit: 'hour' | 'day'): string =>
  point ? `${bucketName(point.at, unit)}: ${sats(point.sat)}` : ''

const barPaths: uPlot.Series.PathBuilder = (...given) => {
  const bars = uPlot.paths.bars?.({ size: [0.7, 48], radius: 0.15 })
  return bars ? bars(...given) : null
}

/** So that the last label, which is centered below its bar, is not cut off. */
function spaceForLast(labelWidth: number, count: number, width: number): number {
  // The scale ends 0.6 of a bar's space after the middle of the last bar.
  const share = 0.6 / count
  return Math.max(0, Math.ceil((labelWidth / 2 - share * width) / (1 - share)))
}

function widthOf(text: string, font: string): number {
  const context = document.createElement('canvas').getContext('2d')
  if (!context) return LABEL_WIDTH
  context.font = font
  return context.measureText(text).width
}

/** Always label the last bar, which is the current period. */
function everyNth(count: number, most: number): number[] {
  const step = Math.ceil(count / most)
  const places: number[] = []
  for (let place = count - 1; place >= 0; place -= step) places.unshift(place)
  return places
}
