import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { count, idParam, named, strict, text, timeParam, timestamp } from '../schemas.ts'

const unlistedNodes = count(
  'Nodes that have not reported for a while what they received, for example because they do not respond. For these nodes, only gateway payments are complete.',
)
const quarterHour = Type.Object({
  at: timestamp('Start of the quarter hour.'),
  sat: Type.Integer({ description: 'Amount received.' }),
  satSoFar: Type.Integer({
    description:
      'The part of `sat` received in the first minutes and seconds of the quarter hour, as many as have passed of the current one. Up to the same time of an earlier day, exactly this was received in the last quarter hour.',
  }),
})
export const Received = named(
  { now: timestamp('Current time of the service.'), unlistedNodes, quarterHours: Type.Array(quarterHour) },
  {
    $id: 'Received',
    description:
      'What was received by quarter hour: gateway payments, and what nodes received otherwise. With `days`, in twice as many days and one more. Empty quarter hours are left out.',
  },
)
export type Received = Static<typeof Received>
export const ReceivedByNode = named(
  {
    now: timestamp('When the sums were taken.'),
    unlistedNodes,
    nodes: Type.Array(
      Type.Object({
        nodeId: text('The node.'),
        sat: Type.Integer({ description: 'Amount received.' }),
        count: count('Payments received.'),
      }),
    ),
  },
  {
    $id: 'ReceivedByNode',
    description: 'What each node received in the last 30 days, up to a minute old. Nodes without any are left out.',
  },
)
export type ReceivedByNode = Static<typeof ReceivedByNode>
export const ReceivedParams = strict(
  {
    days: Type.Optional(Type.Enum(['1', '7', '30'], { description: 'The length of a period that ends now.' })),
    from: Type.Optional(timeParam('Instead of `days`: only what was received at this time or later.')),
    to: Type.Optional(timeParam('With `from`: only what was received before this time, at most 63 days later.')),
    nodeId: Type.Optional(idParam('Only payments of this node.')),
  },
  { $id: 'ReceivedParams', description: 'Which payments to add up.' },
)

const ofPerson = { tag: 'Dashboard', caller: 'session', errors: [], status: 200, method: 'GET' } as const

export const getReceived = operation({
  ...ofPerson,
  path: '/dashboard/api/received',
  operationId: 'getReceived',
  summary: 'Get what was received, over time',
  query: ReceivedParams,
  response: Received,
})
export const getReceivedByNode = operation({
  ...ofPerson,
  path: '/dashboard/api/received/nodes',
  operationId: 'getReceivedByNode',
  summary: 'Get what each node has received',
  response: ReceivedByNode,
})
