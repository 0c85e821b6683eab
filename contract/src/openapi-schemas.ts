import type { TSchema } from 'typebox'
import { RULES } from './readable-text.ts'

export type Json = { [name: string]: unknown }
/** Parts of the document that are written once and referenced by name. */
export type Components = { schemas: Map<string, Json>; responses: Map<string, Json> }

/** The schema as OpenAPI 3.1: named schemas become references, and enums get a type. */
export function toOpenApi(schema: TSchema, components: Components): Json {
  const { $id, examples: _examples, ...rest } = schema as Json & { $id?: string }
  const body = Object.fromEntries(
    Object.entries(rest).map(([keyword, value]) => [
      keyword,
      keyword === 'properties' ? mapProperties(value as Json, components) : convertValue(value, components),
    ]),
  )
  const portable = sized(inWords(body))
  const typed = 'enum' in portable && !('type' in portable) ? { type: 'string', ...portable } : portable
  if ($id === undefined) return typed
  components.schemas.set($id, typed)
  return { $ref: `#/components/schemas/${$id}` }
}

/**
 * Generated clients compile patterns with their own engine: Python's has no `\p`, Go's neither lookahead nor `\u`. So the rules for readable
 * text are given in words, and only the service checks them.
 */
function inWords(schema: Json): Json {
  const { pattern, ...rest } = schema
  const rule = RULES[String(pattern)]
  if (rule === undefined) return schema
  return { ...rest, description: [rest.description, `It ${rule}.`].filter(Boolean).join(' ') }
}

const INT32_MAX = 2 ** 31 - 1

/** Generated clients otherwise read integers into 32 bits, which overflow at 21 bitcoins, or in the year 2038. */
const sized = (schema: Json): Json =>
  schema.type === 'integer' && !(Number(schema.maximum) <= INT32_MAX) ? { ...schema, format: 'int64' } : schema

const mapProperties = (properties: Json, components: Components): Json =>
  Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, toOpenApi(property as TSchema, components)]))

const convertValue = (value: unknown, components: Components): unknown => {
  if (Array.isArray(value)) return value.map((one) => convertValue(one, components))
  return typeof value === 'object' && value !== null ? toOpenApi(value as TSchema, components) : value
}
