import { AjvCompiler } from '@fastify/ajv-compiler'
import { inject } from 'vitest'
import type { Promised } from '../../../testing/contract.ts'

/** Checks the status, error code and fields of a response against the contract, if the contract has the operation. */

type Validate = { (value: unknown): boolean; errors?: { instancePath: string; message?: string }[] | null }

const patterns = inject('contract').map((operation) => ({
  operation,
  // The router answers 404 if a parameter is longer (maxParamLength in http/app.ts).
  pattern: new RegExp(`^${operation.path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]{1,200}')}$`),
}))
const isLiteral = ({ path }: Promised): boolean => !path.includes('{')

export function operationAt(method: string, path: string): Promised | undefined {
  const [pathname = ''] = path.split('?')
  const found = patterns.filter(({ operation, pattern }) => operation.method === method && pattern.test(pathname))
  return (found.find(({ operation }) => isLiteral(operation)) ?? found[0])?.operation
}

/** How the response differs from the contract; undefined if it does not. */
export function mismatch(operation: Promised, status: number, text: string): string | undefined {
  if (status !== operation.status) return errorMismatch(operation, status, text)
  if (operation.response === undefined) return operation.status === 204 && text !== '' ? 'a 204 with a body' : undefined
  return fieldMismatch(operation.response, text)
}

function errorMismatch({ errors }: Promised, status: number, text: string): string | undefined {
  const promised = errors.find((one) => one.status === status)
  if (!promised) return `status ${status} is not in the contract: ${text}`
  const code = JSON.parse(text).error?.code
  if (!promised.codes.includes(code)) return `code ${code} is not in the contract`
  return fieldMismatch(promised.schema, text)
}

const compile = AjvCompiler()({}, { customOptions: { coerceTypes: false, removeAdditional: false } }) as unknown as (route: {
  schema: object
}) => Validate
const validators = new WeakMap<object, Validate>()

function fieldMismatch(schema: object, text: string): string | undefined {
  const validate = validators.get(schema) ?? compile({ schema })
  validators.set(schema, validate)
  return validate(JSON.parse(text)) ? undefined : JSON.stringify(validate.errors?.map((one) => [one.instancePath, one.message]))
}
