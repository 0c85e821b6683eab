import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { flag } from '../schemas.ts'

/** The data of the server-sent event `changed`. Events are not replayed, so the page reloads everything after reconnecting. */
export const Changed = Type.Object(
  { nodes: flag('Nodes changed.'), payments: flag('Payments changed.'), activity: flag('The activity log has new entries.') },
  { $id: 'Changed', description: 'Which kinds of objects changed. Fetch them to get their current state.' },
)
export type Changed = Static<typeof Changed>

export const streamChanges = operation({
  method: 'GET',
  path: '/dashboard/api/events',
  operationId: 'streamChanges',
  tag: 'Dashboard',
  summary: 'Stream changes as server-sent events',
  caller: 'session',
  status: 200,
  errors: [],
})
