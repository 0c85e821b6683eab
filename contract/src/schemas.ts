import { type TProperties, type TSchema, Type } from 'typebox'
import { READABLE } from './readable-text.ts'

/** `$id` and `description` become the name and text of a component in openapi.json and of a type in the SDK. */
type ObjectOptions = { $id: string; description: string; minProperties?: number; examples?: unknown[] }

/** Request input: unknown fields and parameters are rejected (C5). */
export const strict = <P extends TProperties>(properties: P, options?: ObjectOptions) =>
  Type.Object(properties, { additionalProperties: false, ...options })

/** A response object. Fields may be added within v1 (C1), so clients must accept unknown ones. */
export const named = <P extends TProperties>(properties: P, options: ObjectOptions) => Type.Object(properties, options)

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** An object whose fields are not part of the contract. */
export const anyObject = (description: string) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', properties: {}, additionalProperties: true, description })

export const MAX_SAT = 9_007_199_254_740

export const text = (description: string) => Type.String({ description })
export const flag = (description: string) => Type.Boolean({ description })
export const count = (description: string) => Type.Integer({ minimum: 0, description })
export const timestamp = (description: string) => Type.Integer({ minimum: 0, description: `${description} Unix seconds.` })
/** A time to search by, until the end of the year 9999. PostgreSQL and the dashboard do not support all later times. */
export const timeParam = (description: string) => ({ ...timestamp(description), maximum: 253_402_300_799 })
/** An id to search by. No id contains any other character, and PostgreSQL rejects some (NUL). */
export const idParam = (description: string) => Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description })
export const amountSat = (description: string) => Type.Integer({ minimum: 1, maximum: MAX_SAT, description })
export const anyAmountSat = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_SAT, description })
export const readableText = (description: string) => Type.String({ maxLength: 500, pattern: READABLE, description })
/** Only the length is checked here; the code that uses the text validates the rest. */
export const boundedText = (description: string) => Type.String({ maxLength: 1000, description })
export const personGivenName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 100, pattern: READABLE, description })

export const NoParams = strict({}, { $id: 'NoParams', description: 'No fields. The body may be absent or an empty object.' })

export const NextCursor = nullable(text('Pass it as `cursor` to get the next page; null on the last page.'))

export const cursorQuery = strict({ cursor: Type.Optional(text('`nextCursor` of the previous page.')) })

export const NodeId = Type.Object({ nodeId: text('Id of a node, `node_…`.') })
