import { AjvCompiler } from '@fastify/ajv-compiler'
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'

/** C5: what is sent is checked as it is; nothing is converted and nothing removed. */
const AJV = { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: false } as const

/**
 * Compiling the schemas of every route takes longer than the rest of a start, and most processes never use most routes. So a schema is
 * compiled when it is first used. A test compiles all of them: a broken one is found there, not by a caller.
 */
export function compileSchemasLazily(app: FastifyInstance): void {
  const validators = once(() => AjvCompiler()({}, { customOptions: AJV }) as FastifySchemaCompiler<unknown>)
  app.setValidatorCompiler((route) => {
    const compiled = once(() => validators()(route))
    const validate: ReturnType<FastifySchemaCompiler<unknown>> = (data) => {
      const result = compiled()(data)
      // Fastify reads the reason for a refusal from the function it called.
      validate.errors = compiled().errors ?? null
      return result
    }
    return validate
  })
  const serializers = once(() => SerializerSelector()() as FastifySerializerCompiler<unknown>)
  app.setSerializerCompiler((route) => {
    const compiled = once(() => serializers()(route))
    return (data) => compiled()(data)
  })
}

function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}
