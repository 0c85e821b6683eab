import { Type } from 'typebox'
import { operation } from './operation.ts'
import { named } from './schemas.ts'

const Health = named(
  { status: Type.Literal('ok') },
  { $id: 'Health', description: 'The service is running.', examples: [{ status: 'ok' }] },
)
/** Health probes may add any query parameters. */
const anyQuery = Type.Object({})

export const getHealth = operation({
  method: 'GET',
  path: '/healthz',
  operationId: 'getHealth',
  tag: 'Health',
  summary: 'Check that the process is alive',
  caller: 'anyone',
  query: anyQuery,
  status: 200,
  response: Health,
  errors: [],
})

export const getReadiness = operation({
  method: 'GET',
  path: '/readyz',
  operationId: 'getReadiness',
  tag: 'Health',
  summary: 'Check that the service is ready',
  description: 'Returns 503 while the database is unreachable.',
  caller: 'anyone',
  query: anyQuery,
  status: 200,
  response: Health,
  errors: ['service_unavailable'],
})
