import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { count, flag, named, nullable, strict, text, timestamp } from '../schemas.ts'

export const Host = named(
  {
    id: text('The id of the host: of a machine, or of the whole installation on Kubernetes.'),
    isHere: flag('It is the host of the process that responds.'),
    nodes: count('Its nodes that are not deleted.'),
    nodesReady: count('Those of them that are ready.'),
    nodesFailed: count('Those of them that have failed.'),
    nodesDeleted: count('Its deleted nodes whose data is still kept.'),
    slots: nullable(count('How many nodes it may have (`MAX_NODES`); null if it is not the host of the process that responds.')),
    slotsUsed: count('How many of them are taken. Nodes of the treasury do not count.'),
  },
  { $id: 'Host', description: 'Where nodes run.' },
)
export const HostList = named({ hosts: Type.Array(Host) }, { $id: 'HostList', description: 'All hosts.' })
export type Host = Static<typeof Host>

export const CatalogVersion = named(
  {
    version: text('The version.'),
    isInCatalog: flag('Nodes can be created with it or updated to it. Otherwise, only existing nodes still run it.'),
    isLatest: flag('New nodes get this one.'),
    nodes: count('Nodes that run it now or ran it last, without deleted ones.'),
  },
  { $id: 'CatalogVersion', description: 'One version of the node software.' },
)
export const VersionCatalog = named(
  {
    versions: Type.Array(CatalogVersion),
    nodesNeverRun: count('Nodes that have not run yet, so that no version is known.'),
    whyNoUpdates: nullable(text('Why no node can be updated on this installation; null if they can be.')),
  },
  { $id: 'VersionCatalog', description: 'The versions of the node software, oldest first.' },
)
export type VersionCatalog = Static<typeof VersionCatalog>

export const DailyStats = named(
  {
    at: timestamp('When the day began, in UTC.'),
    accounts: count('Accounts that were created.'),
    nodes: count('Nodes that were created.'),
    paymentsReceived: count('Gateway payments that nodes received.'),
    receivedSat: count('Their sum in satoshis.'),
    paymentsPaid: count('Gateway payments whose credential was validated for the first time.'),
  },
  { $id: 'DailyStats', description: 'What happened on one day.' },
)
export const DailyStatsList = named(
  { days: Type.Array(DailyStats) },
  { $id: 'DailyStatsList', description: 'One entry per day in UTC, oldest first. The last is today, up to now.' },
)
export type DailyStats = Static<typeof DailyStats>

const JOBS = ['reconciler', 'settlements', 'events', 'webhooks', 'retention', 'metering'] as const
export const BackgroundJob = named(
  {
    name: Type.Enum([...JOBS], {
      description:
        '`reconciler`: nodes to check. `settlements`: invoices to ask ready nodes about. `events`: events to add to the feed. `webhooks`: deliveries. `retention`: deleted nodes whose data is to be removed. `metering`: usage to enter into the ledger.',
    }),
    waiting: count('How much is waiting, including what is not due yet where that is stored.'),
    lagSeconds: Type.Number({ minimum: 0, description: 'How long the most overdue of it has been due; 0 if nothing is.' }),
    lateAfterSeconds: count('From this lag on, something is wrong.'),
  },
  { $id: 'BackgroundJob', description: 'Work that is done in the background.' },
)
export const BackgroundWork = named(
  {
    now: timestamp('When this was measured.'),
    jobs: Type.Array(BackgroundJob),
    database: Type.Object({
      busy: count('Connections in use by this process.'),
      idle: count('Open connections that are not in use.'),
      waiting: count('Statements that wait for a connection.'),
      max: count('How many connections this process may open.'),
    }),
    orphanedNodes: nullable(count('Nodes in the cluster that are not in the database; null if unknown, or without a cluster.')),
  },
  { $id: 'BackgroundWork', description: 'The background work of the service, and how far behind it is.' },
)
export type BackgroundWork = Static<typeof BackgroundWork>

const ofOperator = { method: 'GET', tag: 'Operator', caller: 'operator', status: 200, errors: [] } as const

export const listHosts = operation({
  ...ofOperator,
  path: '/operator/v1/hosts',
  operationId: 'listHosts',
  summary: 'List the hosts of nodes, and how many nodes they have room for',
  response: HostList,
})
export const listVersions = operation({
  ...ofOperator,
  path: '/operator/v1/versions',
  operationId: 'listVersions',
  summary: 'List the versions of the node software, and how many nodes run each',
  response: VersionCatalog,
})
export const listDailyStats = operation({
  ...ofOperator,
  path: '/operator/v1/stats/days',
  operationId: 'listDailyStats',
  summary: 'List totals of all accounts by day',
  query: strict({
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: 90, description: 'How many days, including today. Default: 30.' })),
  }),
  response: DailyStatsList,
})
export const getBackgroundWork = operation({
  ...ofOperator,
  path: '/operator/v1/background-work',
  operationId: 'getBackgroundWork',
  summary: 'Get how far behind the background work is',
  response: BackgroundWork,
})
