import { type Static, Type } from 'typebox'
import { operation } from '../operation.ts'
import { flag } from '../schemas.ts'

/** The data of `event: changed`. After a reconnect the page asks for everything again. */
export const Changed = Type.Object(
  { nodes: flag('Nodes changed.'), payments: flag('Payments changed.'), activity: flag('Something else happened.') },
  { $id: 'Changed', description: 'What kind of thing changed; for what it is now, ask.' },
)
export type Changed = Static<typeof Changed>

export const streamEvents = operation({
  method: 'GET',
  path: '/dashboard/api/events',
  operationId: 'streamEvents',
  tag: 'Dashboard',
  summary: 'Server-sent events about changes',
  caller: 'session',
  status: 200,
  errors: [],
})
