import { Button, SegmentedControl, Table } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { type CreditUsage, usageCsv, usageQuery } from '../../api/credit.ts'
import type { Me } from '../../api/types.ts'
import { MsatAmount } from '../../components/amount.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { dayStart, dayStarts, shortDay, sumsOf } from '../../text/days.ts'
import { duration, grouped, percent, satsOfMsat } from '../../text/format.ts'

const PERIODS = ['7', '30', '90'] as const
type Point = { at: number; msat: number }

export function UsagePanel({ me }: { me: Me }) {
  const [days, setDays] = useState<(typeof PERIODS)[number]>('7')
  const now = useNow(60)
  const today = dayStart(now)
  const from = dayStart(today, 1 - Number(days))
  const usage = useQuery(usageQuery(from))
  const points = useMemo(() => pointsOf(usage.data, today, Number(days)), [usage.data, today, days])
  const total = usage.data?.nodes.reduce((sum, { amountMsat }) => sum + amountMsat, 0) ?? 0
  return (
    <section className="card usage" aria-labelledby="usage">
      <div className="page-head received-head">
        <div>
          <h2 id="usage" className="section-title">
            Usage per node
          </h2>
          {usage.data && (
            <div className="figure" data-testid="usage-total">
              <MsatAmount msat={total} />
            </div>
          )}
        </div>
        <SegmentedControl
          aria-label="Period"
          value={days}
          onChange={(value) => setDays(PERIODS.find((one) => one === value) ?? '7')}
          data={PERIODS.map((value) => ({ value, label: `${value} days` }))}
        />
      </div>
      <p className="small dim">
        Since {shortDay(from)}, in your time zone, including what is not charged yet.
        {usage.data && (
          <>
            {' '}
            Updated <Time at={usage.dataUpdatedAt / 1000} />.
          </>
        )}
      </p>
      {!usage.data && <Problem error={usage.error} what="The usage could not be loaded." onRetry={() => void usage.refetch()} />}
      {usage.isPending && <Loading height={160} />}
      {usage.data &&
        (usage.data.nodes.length === 0 ? (
          <p className="dim">
            {me.nodePriceSatPerDay === 0 ? 'Nodes are free on this service.' : 'No node was charged in this period.'}
          </p>
        ) : (
          <>
            <Bars points={points} />
            <NodeTable nodes={usage.data.nodes} total={total} />
            <Button
              component="a"
              href={usageCsv(from)}
              download="usage.csv"
              size="xs"
              mt="sm"
              variant="default"
              leftSection={<IconDownload size={14} aria-hidden />}
            >
              Export usage as CSV
            </Button>
          </>
        ))}
    </section>
  )
}

/** One point for each local day, the last one today. */
function pointsOf(usage: CreditUsage | undefined, today: number, days: number): Point[] {
  const starts = dayStarts(today, days)
  const sums = sumsOf(starts, usage?.quarterHours ?? [], ({ amountMsat }) => amountMsat)
  return starts.map((at, place) => ({ at, msat: sums[place] ?? 0 }))
}

const BAR = 10
const HEIGHT = 100

function Bars({ points }: { points: Point[] }) {
  const highest = Math.max(1, ...points.map(({ msat }) => msat))
  const [first, last] = [points[0], points.at(-1)]
  if (!first || !last) return null
  return (
    <figure className="use-chart">
      <svg
        viewBox={`0 0 ${points.length * BAR} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Cost per day, at most ${satsOfMsat(highest)}`}
      >
        {points.map(({ at, msat }, place) => {
          const height = (msat / highest) * HEIGHT
          return (
            <g key={at}>
              <title>{`${shortDay(at)}: ${satsOfMsat(msat)}`}</title>
              <rect className="use-space" x={place * BAR} y={0} width={BAR} height={HEIGHT} />
              <rect className="use-bar" x={place * BAR + 1.5} y={HEIGHT - height} width={BAR - 3} height={height} />
            </g>
          )
        })}
      </svg>
      <figcaption className="small dim">
        <span>{shortDay(first.at)}</span>
        <span>highest day: {satsOfMsat(highest)}</span>
        <span>today</span>
      </figcaption>
    </figure>
  )
}

/** More nodes would push the ledger off the page. */
const SHOWN_NODES = 10

/** Most expensive first. */
function NodeTable({ nodes, total }: { nodes: CreditUsage['nodes']; total: number }) {
  const [isWhole, setWhole] = useState(false)
  const isFolded = !isWhole && nodes.length > SHOWN_NODES + 1
  const shown = isFolded ? nodes.slice(0, SHOWN_NODES) : nodes
  const rest = nodes.slice(shown.length)
  const restMsat = rest.reduce((sum, { amountMsat }) => sum + amountMsat, 0)
  return (
    <div className="list">
      <Table verticalSpacing="xs" aria-label="Usage per node">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Node</Table.Th>
            <Table.Th className="number from-460">Charged time</Table.Th>
            <Table.Th className="number">Cost</Table.Th>
            <Table.Th className="number">Share</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shown.map(({ nodeId, nodeName, isDeleted, amountMsat, minutes }) => (
            <Table.Tr key={nodeId}>
              <Table.Td className="breakable">
                {isDeleted ? (
                  <>
                    <bdi>{nodeName ?? nodeId}</bdi> <span className="dim">(deleted)</span>
                  </>
                ) : (
                  <TextLink to="/nodes/$nodeId" params={{ nodeId }}>
                    <bdi>{nodeName ?? nodeId}</bdi>
                  </TextLink>
                )}
              </Table.Td>
              <Table.Td className="number from-460">{duration(minutes * 60)}</Table.Td>
              <Table.Td className="number">
                <MsatAmount msat={amountMsat} />
              </Table.Td>
              <Table.Td className="number">{percent(amountMsat, total)}</Table.Td>
            </Table.Tr>
          ))}
          {isFolded && (
            <Table.Tr data-testid="other-nodes">
              <Table.Td>
                {grouped(rest.length)} other nodes{' '}
                <Button size="compact-xs" variant="subtle" onClick={() => setWhole(true)}>
                  Show all
                </Button>
              </Table.Td>
              <Table.Td className="number from-460">
                {duration(rest.reduce((sum, { minutes }) => sum + minutes, 0) * 60)}
              </Table.Td>
              <Table.Td className="number">
                <MsatAmount msat={restMsat} />
              </Table.Td>
              <Table.Td className="number">{percent(restMsat, total)}</Table.Td>
            </Table.Tr>
          )}
        </Table.Tbody>
      </Table>
    </div>
  )
}
