import { IconAlertTriangle, IconCircleCheck } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { type BackgroundWork, backgroundQuery, statsQuery } from '../../api/operator.ts'
import { Page } from '../../components/layout/page.tsx'
import { Loading } from '../../components/loading.tsx'
import { Problem } from '../../components/problem.tsx'
import { Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { counted, duration, grouped } from '../../text/format.ts'

type Job = BackgroundWork['jobs'][number]

const JOBS: Record<Job['name'], { title: string; what: string; waiting: [one: string, many: string] }> = {
  reconciler: {
    title: 'Node checks',
    what: 'Observes nodes and starts, stops and repairs them.',
    waiting: ['node to check', 'nodes to check'],
  },
  settlements: {
    title: 'Settlements',
    what: 'Asks ready nodes which invoices were paid. Nodes that are not ready are asked later.',
    waiting: ['invoice to ask about', 'invoices to ask about'],
  },
  events: { title: 'Events', what: 'Adds each event to the feed of its account.', waiting: ['event to add', 'events to add'] },
  webhooks: {
    title: 'Webhooks',
    what: 'Sends events to customers’ servers. Failed deliveries wait for their next attempt.',
    waiting: ['delivery not made yet', 'deliveries not made yet'],
  },
  retention: {
    title: 'Retention',
    what: 'Removes the data of deleted nodes when their time is over.',
    waiting: ['node to remove', 'nodes to remove'],
  },
  metering: {
    title: 'Metering',
    what: 'Enters the use of nodes into the ledger.',
    waiting: ['entry to make', 'entries to make'],
  },
}

/** Shows seconds, because "less than a minute" would be too vague here. */
const lagIn = (seconds: number): string => (seconds < 120 ? `${Math.floor(seconds)} s` : duration(seconds))

export function BackgroundPage() {
  const work = useQuery(backgroundQuery)
  const stats = useQuery(statsQuery)
  const late = work.data?.jobs.filter(isLate) ?? []
  return (
    <Page title="Background work">
      {work.error && (
        <Problem error={work.error} what="The background work could not be measured." onRetry={() => void work.refetch()} />
      )}
      {work.isPending && <Loading height={480} />}
      {work.data && (
        <>
          <p className="dim">
            {late.length === 0 ? 'Everything is on time.' : `Behind: ${late.map(({ name }) => JOBS[name].title).join(', ')}.`}{' '}
            Measured <Time at={work.data.now} />, for all processes together.
          </p>
          {late.length > 0 && (
            <p className="note small">
              Look for warnings in the log of the service, and check that a process with ROLE=all runs on every host
              {late.some(({ name }) => name === 'retention') && ', and on Kubernetes one with ROLE=reaper'}.
            </p>
          )}
          <ul className="card list rows" aria-label="Background work">
            {work.data.jobs.map((job) => (
              <JobRow key={job.name} job={job} />
            ))}
          </ul>
          <section className="card spaced" aria-labelledby="process">
            <h2 id="process">This process</h2>
            <dl className="facts">
              <dt>Database</dt>
              <dd>
                {counted(work.data.database.busy, 'connection', 'connections')} in use, {work.data.database.idle} idle, at most{' '}
                {work.data.database.max};{' '}
                {work.data.database.waiting === 0
                  ? 'nothing waits for one'
                  : counted(work.data.database.waiting, 'statement waits for one', 'statements wait for one')}
              </dd>
              <dt>Orphaned nodes</dt>
              <dd>
                {work.data.orphanedNodes === null
                  ? 'Not known: only an installation on Kubernetes counts them.'
                  : `${grouped(work.data.orphanedNodes)} in the cluster that are not in the database`}
              </dd>
              <dt>Key rotation</dt>
              <dd>
                {stats.data
                  ? `${counted(stats.data.rowsUnderPreviousKey, 'secret is', 'secrets are')} still sealed under the previous master key`
                  : stats.isPending
                    ? 'Loading…'
                    : 'Not known'}
              </dd>
            </dl>
          </section>
        </>
      )}
    </Page>
  )
}

const isLate = ({ lagSeconds, lateAfterSeconds }: Job): boolean => lagSeconds >= lateAfterSeconds

function JobRow({ job }: { job: Job }) {
  const { title, what, waiting } = JOBS[job.name]
  return (
    <li className="row">
      <span className="row-main">
        <strong>{title}</strong>
        <br />
        <span className="small dim">{what}</span>
        <br />
        <span className="small">
          {grouped(job.waiting)} {job.waiting === 1 ? waiting[0] : waiting[1]}
          {job.lagSeconds >= 1 ? ` · the most overdue has waited ${lagIn(job.lagSeconds)}` : ' · nothing is overdue'}
        </span>
      </span>
      {isLate(job) ? (
        <Status word="Behind" tone="bad" icon={IconAlertTriangle} />
      ) : (
        <Status word="On time" tone="good" icon={IconCircleCheck} />
      )}
    </li>
  )
}
