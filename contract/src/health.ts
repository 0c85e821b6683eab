import { Type } from 'typebox'
import { operation } from './operation.ts'
import { named } from './schemas.ts'

const Health = named(
  { status: Type.Literal('ok') },
  { $id: 'Health', description: 'The service answers.', examples: [{ status: 'ok' }] },
)
/** Probes may add parameters of their own. */
const anyQuery = Type.Object({})

export const getHealth = operation({
  method: 'GET',
  path: '/healthz',
  operationId: 'getHealth',
  tag: 'Health',
  summary: 'Is the process alive',
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
  summary: 'Is the service ready',
  description: 'Answers 503 while the database cannot be reached.',
  caller: 'anyone',
  query: anyQuery,
  status: 200,
  response: Health,
  errors: ['service_unavailable'],
})
