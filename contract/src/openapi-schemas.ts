import type { TSchema } from 'typebox'

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
  const typed = 'enum' in body && !('type' in body) ? { type: 'string', ...body } : body
  if ($id === undefined) return typed
  components.schemas.set($id, typed)
  return { $ref: `#/components/schemas/${$id}` }
}

const mapProperties = (properties: Json, components: Components): Json =>
  Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, toOpenApi(property as TSchema, components)]))

const convertValue = (value: unknown, components: Components): unknown => {
  if (Array.isArray(value)) return value.map((one) => convertValue(one, components))
  return typeof value === 'object' && value !== null ? toOpenApi(value as TSchema, components) : value
}
