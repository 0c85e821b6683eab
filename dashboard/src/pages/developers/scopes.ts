import type { ApiKey } from '../../api/types.ts'

export type Scope = ApiKey['scopes'][number]

/** What a key may do, as people read it. Every key has the first one. */
export const SCOPES: Record<Scope, { name: string; description: string }> = {
  'nodes:read': { name: 'Read', description: 'See your nodes. Every key has this permission.' },
  'nodes:write': { name: 'Write', description: 'Create, rename, start, stop, update and delete nodes.' },
  'gateway:write': { name: 'Gateway', description: 'Create challenges and redeem payments.' },
  'events:read': {
    name: 'Events',
    description: 'Read what happened in the account: payments, nodes, credit and keys.',
  },
  'webhooks:write': { name: 'Webhooks', description: 'Choose where events are sent, and see what was sent.' },
}

export const SCOPE_NAMES = Object.keys(SCOPES) as Scope[]
