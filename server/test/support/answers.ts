import { Check, Errors } from 'typebox/value'
import { ERRORS, type ErrorCode, errorSchema } from '../../../contract/src/errors.ts'
import { errorsOf, type Operation } from '../../../contract/src/operation.ts'
import { operations } from '../../../contract/src/operations.ts'

/** Every response of an operation in the contract is checked against it: status, error code and fields. */

const patterns = operations.map((operation) => ({
  operation,
  // A longer parameter matches no route: the router answers it.
  pattern: new RegExp(`^${operation.path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]{1,200}')}$`),
}))
const isLiteral = ({ path }: Operation): boolean => !path.includes('{')

export function operationAt(method: string, path: string): Operation | undefined {
  const [pathname = ''] = path.split('?')
  const found = patterns.filter(({ operation, pattern }) => operation.method === method && pattern.test(pathname))
  return (found.find(({ operation }) => isLiteral(operation)) ?? found[0])?.operation
}

/** What is wrong with it; undefined if nothing is. */
export function mismatch(operation: Operation, status: number, text: string): string | undefined {
  if (status !== operation.status) return errorMismatch(operation, status, text)
  if (operation.response === undefined) return operation.status === 204 && text !== '' ? 'a 204 with a body' : undefined
  return fieldMismatch(closed(operation.response), text)
}

function errorMismatch(operation: Operation, status: number, text: string): string | undefined {
  const codes = errorsOf(operation).get(status)
  if (!codes) return `status ${status} is not in the contract: ${text}`
  const code = JSON.parse(text).error?.code as ErrorCode
  if (!codes.includes(code) || ERRORS[code][0] !== status) return `code ${code} is not in the contract`
  return fieldMismatch(errorSchema(status), text)
}

function fieldMismatch(schema: object, text: string): string | undefined {
  const value: unknown = JSON.parse(text)
  return Check(schema, value)
    ? undefined
    : JSON.stringify([...Errors(schema, value)].map(({ instancePath, message }) => [instancePath, message]))
}

/** Fields may be added within v1, but only if documented: a response has no fields beyond the contract. */
function closed(schema: object): object {
  return JSON.parse(JSON.stringify(schema), (key, value) =>
    key !== 'properties' && value?.type === 'object' && value.properties && value.additionalProperties === undefined
      ? { ...value, additionalProperties: false }
      : value,
  )
}
