import { AjvCompiler } from '@fastify/ajv-compiler'
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'

/** C5: input is validated as it is; nothing is converted or removed. */
const AJV = { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: false } as const

/**
 * Compiling the schemas of all routes takes longer than the rest of the startup, and most processes use few routes. So each schema is
 * compiled on first use. A test compiles all of them, so that a broken one is found there and not by a caller.
 */
export function compileSchemasLazily(app: FastifyInstance): void {
  const validators = once(() => AjvCompiler()({}, { customOptions: AJV }) as FastifySchemaCompiler<unknown>)
  app.setValidatorCompiler((route) => {
    const compiled = once(() => validators()(route))
    const validate: ReturnType<FastifySchemaCompiler<unknown>> = (data) => {
      const result = compiled()(data)
      // Fastify reads the errors from the function it called.
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
