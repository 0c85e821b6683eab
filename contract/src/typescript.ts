import type { TSchema } from 'typebox'
import type { Operation } from './operation.ts'

type Schema = {
  $id?: string
  description?: string
  type?: string
  const?: string | boolean
  enum?: string[]
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  additionalProperties?: unknown
  required?: string[]
}

const LINE_WIDTH = 130

/** Readable TypeScript for every named type these operations accept or return. */
export function typesOf(operations: Operation[]): string {
  const types = new Map<string, Schema>()
  for (const { query, body, response } of operations) for (const schema of [query, body, response]) collect(schema, types)
  return [...types].map(([name, schema]) => `${comment(schema, '')}${declaration(name, schema)}\n`).join('\n')
}

/** Puts line breaks where the formatter would. */
function declaration(name: string, schema: Schema): string {
  const line = `export type ${name} = ${bodyOf(schema, '')}`
  if (!schema.enum || line.length <= LINE_WIDTH) return line
  return `export type ${name} =${schema.enum.map((value) => `\n  | ${literal(value)}`).join('')}`
}

function collect(schema: TSchema | Schema | undefined, types: Map<string, Schema>): void {
  if (schema === undefined) return
  const { $id, items, anyOf = [], properties = {} } = schema as Schema
  for (const part of [items, ...anyOf, ...Object.values(properties)]) collect(part, types)
  // An empty body needs no type.
  if ($id !== undefined && $id !== 'NoParams') types.set($id, schema as Schema)
}

const comment = ({ description }: Schema, indent: string): string =>
  description === undefined ? '' : `${indent}/** ${description} */\n`

const typeOf = (schema: Schema, indent: string): string => schema.$id ?? bodyOf(schema, indent)

function bodyOf(schema: Schema, indent: string): string {
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum) return schema.enum.map(literal).join(' | ')
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, indent)).join(' | ')
  if (schema.type === 'array') return `${typeOf(schema.items ?? {}, indent)}[]`
  if (schema.type === 'integer') return 'number'
  if (schema.type !== 'object') return schema.type ?? 'unknown'
  const deeper = `${indent}  `
  if (Object.keys(schema.properties ?? {}).length === 0 && schema.additionalProperties) return 'Record<string, unknown>'
  const members = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const mark = schema.required?.includes(name) ? '' : '?'
    const note = property.$id === undefined ? comment(propertyNote(property), deeper) : ''
    return `${note}${deeper}${name}${mark}: ${typeOf(property, deeper)}\n`
  })
  return `{\n${members.join('')}${indent}}`
}

/** A nullable property is a union; its description is on the member that is not null. */
const propertyNote = (property: Schema): Schema =>
  property.description === undefined
    ? (property.anyOf?.find(({ $id, type }) => $id === undefined && type !== 'null') ?? {})
    : property

const literal = (value: string | boolean): string => (typeof value === 'string' ? `'${value}'` : String(value))
