import { Type } from 'typebox'
import { READABLE } from '../../../contract/src/readable-text.ts'

export const ErrorBody = Type.Object({
  error: Type.Object({ code: Type.String(), message: Type.String() }, { additionalProperties: true }),
})

/** Unix seconds. */
export const Timestamp = Type.Integer({ minimum: 0 })

export const strict = <P extends Parameters<typeof Type.Object>[0]>(properties: P) =>
  Type.Object(properties, { additionalProperties: false })

/** A name chosen by a person. */
export const Name = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: READABLE,
})

/** For values that are validated elsewhere. */
export const Text = Type.String({ maxLength: 1000 })

export const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()])
