import 'uplot/dist/uPlot.min.css'
import { useComputedColorScheme } from '@mantine/core'
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import { grouped } from '../text/format.ts'
import { LOCALES } from '../text/locales.ts'

type Props = { points: { at: number; sat: number }[]; unit: 'hour' | 'day' }

export const CHART_HEIGHT = 220

const HOUR = new Intl.DateTimeFormat(LOCALES, { hour: '2-digit', minute: '2-digit' })
const DAY = new Intl.DateTimeFormat(LOCALES, { weekday: 'short', day: 'numeric' })

/** A bar chart on a canvas. Screen readers cannot read it, so the caller adds a table. */
export default function Chart({ points, unit }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const scheme = useComputedColorScheme('light', { getInitialValueInEffect: false })

  // biome-ignore lint/correctness/useExhaustiveDependencies: a canvas does not follow CSS colors, so a theme change must redraw it
  useEffect(() => {
    const host = box.current
    if (!host) return
    const style = getComputedStyle(document.documentElement)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const format = unit === 'hour' ? HOUR : DAY
    const highest = Math.max(1, ...points.map(({ sat }) => sat))
    const axis = { stroke: colour('--mantine-color-dimmed'), font: '12px system-ui, sans-serif', ticks: { show: false } }
    const plot = new uPlot(
      {
        width: host.clientWidth,
        height: CHART_HEIGHT,
        padding: [12, 24, 0, 0],
        cursor: { show: false },
        legend: { show: false },
        scales: { x: { time: false, range: [-0.6, points.length - 0.4] }, y: { range: [0, highest * 1.1] } },
        series: [{}, { fill: colour('--mantine-color-indigo-filled'), width: 0, points: { show: false }, paths: barPaths }],
        axes: [
          {
            ...axis,
            size: 28,
            grid: { show: false },
            splits: (self) => everyNth(points.length, self.width < 480 ? 4 : 8),
            values: (_, places) => places.map((place) => (points[place] ? format.format(points[place].at * 1000) : '')),
          },
          {
            ...axis,
            size: 64,
            grid: { stroke: colour('--line'), width: 1 },
            incrs: [1, 2, 5]
              .flatMap((digit) => Array.from({ length: 12 }, (_, power) => digit * 10 ** power))
              .sort((a, b) => a - b),
            values: (_, amounts) => amounts.map(grouped),
          },
        ],
      },
      [points.map((_, place) => place), points.map(({ sat }) => sat)],
      host,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height: CHART_HEIGHT }))
    observer.observe(host)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [points, unit, scheme])

  return <div ref={box} aria-hidden="true" className="chart" />
}

const barPaths: uPlot.Series.PathBuilder = (...given) => {
  const bars = uPlot.paths.bars?.({ size: [0.7, 48], radius: 0.15 })
  return bars ? bars(...given) : null
}

/** Always label the last bar, which is the current period. */
function everyNth(count: number, most: number): number[] {
  const step = Math.ceil(count / most)
  const places: number[] = []
  for (let place = count - 1; place >= 0; place -= step) places.unshift(place)
  return places
}
