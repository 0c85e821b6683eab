import { ERRORS, errorSchema } from '../contract/src/errors.ts'
import { errorsOf } from '../contract/src/operation.ts'
import { operations } from '../contract/src/operations.ts'

/** The responses that the contract allows for one operation, as plain JSON. */
export type Promised = {
  method: string
  path: string
  status: number
  response: object | undefined
  errors: { status: number; codes: string[]; schema: object }[]
}

/** Loading the contract takes a third of a second, so it is done once for all test files. */
export function promisedAnswers(): Promised[] {
  return operations.map((operation) => ({
    method: operation.method,
    path: operation.path,
    status: operation.status,
    response: operation.response && closed(operation.response),
    errors: [...errorsOf(operation)].map(([status, codes]) => ({
      status,
      codes: codes.filter((code) => ERRORS[code][0] === status),
      schema: plain(errorSchema(status)),
    })),
  }))
}

/** A response must not have fields that the contract does not name: v1 may get new fields, but only documented ones. */
function closed(schema: object): object {
  return JSON.parse(JSON.stringify(plain(schema)), (key, value) =>
    key !== 'properties' && value?.type === 'object' && value.properties && value.additionalProperties === undefined
      ? { ...value, additionalProperties: false }
      : value,
  )
}

/** Removes `$id`, which the validator would try to resolve as an address. */
const plain = (schema: object): object =>
  JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === '$id' || key === 'examples' ? undefined : value)))
