import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { NumberedActivity } from '../operator/accounts.ts'
import { count, cursorQuery, flag, idParam, NextCursor, named, nullable, strict, text, timeParam, timestamp } from '../schemas.ts'

export const ACTIVITY_KINDS = ['nodes', 'payments', 'keys', 'credit', 'people', 'webhooks'] as const

export const ActivityEntry = named(
  {
    ...NumberedActivity.properties,
    actorName: nullable(text('The name of the key, node or person that did it, as it is now; null if there is none.')),
    targetName: nullable(text('The name of what it is about, as it is now; null if it has none.')),
    isTargetGone: flag('Whether what it is about was deleted or revoked.'),
    nodeId: nullable(text('The node of a payment.')),
    nodeName: nullable(text('The name of that node.')),
    fold: nullable(
      Type.Object(
        {
          payments: count('How many payments.'),
          entries: count('How many entries of the log.'),
          received: count('How many entries say that the money arrived.'),
          validated: count('How many entries say that a credential was validated.'),
          from: timestamp('The oldest entry.'),
          to: timestamp('The newest entry.'),
        },
        {
          description: 'Payments of one node within one hour, as one entry with the action `payments`; null for any other entry.',
        },
      ),
    ),
  },
  { $id: 'ActivityEntry', description: 'One entry of the activity log, with names.' },
)
export type ActivityEntry = Static<typeof ActivityEntry>
export const ActivityPage = named(
  { activity: Type.Array(ActivityEntry), nextCursor: NextCursor },
  {
    $id: 'ActivityPage',
    description: 'One page of the account’s activity log, newest first. It may be short although more follows.',
  },
)
export const ActivityParams = strict({
  ...cursorQuery.properties,
  kind: Type.Optional(Type.Enum([...ACTIVITY_KINDS], { description: 'Only entries of this kind.' })),
  nodeId: Type.Optional(idParam('Only what happened to this node, what it did, and its payments.')),
  keyId: Type.Optional(idParam('Only what happened to this key, and what was done with it.')),
  actor: Type.Optional(idParam('Only what this person or key did; also `operator`, or `service`.')),
  from: Type.Optional(timeParam('Only what happened at this time or later.')),
  to: Type.Optional(timeParam('Only what happened before this time.')),
  folded: Type.Optional(flag('Show payments of one node within one hour as one entry.')),
  hourStartMinute: Type.Optional(
    Type.Enum(['0', '15', '30', '45'], {
      description:
        'The minute of the UTC hour at which the reader’s hours begin, so that no folded entry spans two days. Defaults to `0`.',
    }),
  ),
})
const Subject = Type.Object({ id: text('Its id.'), name: text('Its name.'), isGone: flag('Whether it was deleted or revoked.') })
const KeySubject = Type.Object({ ...Subject.properties, prefix: text('The first characters of its secret.') })
export const ActivitySubjects = named(
  {
    nodes: Type.Array(Subject, { description: 'At most 500, the newest.' }),
    keys: Type.Array(KeySubject, { description: 'At most 500, the newest.' }),
    people: Type.Array(Subject),
  },
  { $id: 'ActivitySubjects', description: 'What activity can be filtered by, including what no longer exists.' },
)
export type ActivitySubjects = Static<typeof ActivitySubjects>

const ofPerson = { tag: 'Dashboard', caller: 'session' } as const

export const listOwnActivity = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/activity',
  operationId: 'listOwnActivity',
  summary: 'List activity, newest first',
  query: ActivityParams,
  status: 200,
  response: ActivityPage,
  errors: [],
})
export const listActivitySubjects = operation({
  ...ofPerson,
  method: 'GET',
  path: '/dashboard/api/activity/subjects',
  operationId: 'listActivitySubjects',
  summary: 'List what activity can be filtered by',
  status: 200,
  response: ActivitySubjects,
  errors: [],
})
