/** What the reference uses of JSON Schema. */
export type Schema = {
  $ref?: string
  type?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
}
export type Schemas = Record<string, Schema>
export type Field = { name: string; type: string; isRequired: boolean; description: string }

export function resolve(schema: Schema, schemas: Schemas): Schema {
  const name = schema.$ref?.replace('#/components/schemas/', '')
  if (name === undefined) return schema
  const found = schemas[name]
  if (!found) throw new Error(`The OpenAPI document has no schema ${name}.`)
  return resolve({ ...found, ...(schema.description === undefined ? {} : { description: schema.description }) }, schemas)
}

const isNull = ({ type }: Schema): boolean => type === 'null'
const optionsOf = (schema: Schema, schemas: Schemas): Schema[] =>
  (schema.anyOf ?? [schema]).map((option) => resolve(option, schemas))

/** Every field of an object and of the objects inside it: `node.id`, `nodes[].id`. */
export function fieldsOf(schema: Schema, schemas: Schemas, prefix = ''): Field[] {
  const whole = resolve(schema, schemas)
  return Object.entries(whole.properties ?? {}).flatMap(([key, property]) => {
    const name = `${prefix}${key}`
    const { description = '', ...value } = resolve(property, schemas)
    const options = optionsOf(value, schemas).filter((option) => !isNull(option))
    const [only = {}] = options
    const field = {
      name,
      type: typeOf(value, schemas),
      isRequired: whole.required?.includes(key) === true,
      description: [description || (options.length === 1 ? (only.description ?? '') : ''), limitsOf(only)]
        .filter(Boolean)
        .join(' '),
    }
    const inner = only.type === 'array' && only.items ? { of: only.items, suffix: '[].' } : { of: only, suffix: '.' }
    return [field, ...(options.length === 1 ? fieldsOf(inner.of, schemas, `${name}${inner.suffix}`) : [])]
  })
}

export function typeOf(schema: Schema, schemas: Schemas): string {
  const names = optionsOf(schema, schemas).map((option) => {
    if (option.const !== undefined) return `\`${JSON.stringify(option.const)}\``
    if (option.enum) return option.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ')
    if (option.anyOf) return typeOf(option, schemas)
    return option.type === 'array' ? `array of ${typeOf(option.items ?? {}, schemas)}` : (option.type ?? 'any')
  })
  return [...new Set(names)].join(' or ')
}

export function limitsOf(schema: Schema): string {
  const { minimum = 0, maximum, maxLength, default: standard } = schema
  return [
    ...(maximum === undefined ? (minimum > 0 ? [`At least ${minimum}.`] : []) : [`From ${minimum} to ${maximum}.`]),
    ...(maxLength === undefined ? [] : [`At most ${maxLength} characters.`]),
    ...(standard === undefined ? [] : [`Default: \`${JSON.stringify(standard)}\`.`]),
  ].join(' ')
}

const MIDNIGHT = 1_767_225_600

/** A value of the right shape, for a response without an example. */
export function sampleOf(schema: Schema, schemas: Schemas, name = ''): unknown {
  const whole = resolve(schema, schemas)
  if (whole.anyOf) return sampleOf(whole.anyOf.find((option) => !isNull(option)) ?? {}, schemas, name)
  if (whole.const !== undefined || whole.default !== undefined) return whole.const ?? whole.default
  if (whole.enum) return whole.enum[0]
  if (whole.type === 'object')
    return Object.fromEntries(Object.entries(whole.properties ?? {}).map(([key, value]) => [key, sampleOf(value, schemas, key)]))
  if (whole.type === 'array') return [sampleOf(whole.items ?? {}, schemas, name)]
  if (whole.type === 'boolean') return true
  if (whole.type === 'integer' || whole.type === 'number') return /At$/.test(name) ? MIDNIGHT : Math.max(1, whole.minimum ?? 1)
  return whole.type === 'null' ? null : (idIn(whole.description) ?? '…')
}

/** Descriptions of ids name their prefix: “Id of a payment, `pay_…`.” */
export function idIn(description = ''): string | undefined {
  const [, prefix] = /`([a-z]+_)…`/.exec(description) ?? []
  return prefix && `${prefix}01hgw2bbg0000000000a`
}
