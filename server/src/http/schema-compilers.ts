import { AjvCompiler } from '@fastify/ajv-compiler'
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'

/** C5: input is validated as it is; nothing is converted or removed. */
const AJV = { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: false } as const

type Validate = ReturnType<FastifySchemaCompiler<unknown>>
type Serialize = ReturnType<FastifySerializerCompiler<unknown>>

/**
 * Compiling the schemas of all routes takes longer than the rest of the startup, and most processes use few routes. So each schema is
 * compiled on first use, and once for all routes that share it. A test compiles all of them, so that a broken one is found there and not by
 * a caller.
 */
export function addSchemaCompilers(app: FastifyInstance, when: 'on first use' | 'at once' = 'on first use'): void {
  const validators = once(() => AjvCompiler()({}, { customOptions: AJV }) as FastifySchemaCompiler<unknown>)
  const validatorOf = oncePerSchema((schema, route: Parameters<FastifySchemaCompiler<unknown>>[0]) =>
    validators()({ ...route, schema }),
  )
  app.setValidatorCompiler((route) => {
    const compiled = once(() => validatorOf(route.schema as object, route))
    if (when === 'at once') compiled()
    const validate: Validate = (data) => {
      const result = compiled()(data)
      // Fastify reads the errors from the function it called.
      validate.errors = compiled().errors ?? null
      return result
    }
    return validate
  })
  const serializers = once(() => SerializerSelector()() as FastifySerializerCompiler<unknown>)
  const serializerOf = oncePerSchema((schema, route: Parameters<FastifySerializerCompiler<unknown>>[0]) =>
    serializers()({ ...route, schema }),
  )
  app.setSerializerCompiler((route) => {
    const compiled = once(() => serializerOf(route.schema as object, route))
    if (when === 'at once') compiled()
    const serialize: Serialize = (data) => compiled()(data)
    return serialize
  })
}

/** The validator and the serializer would resolve an `$id` as a URI; an inlined schema needs none. */
function unnamed(schema: object): object {
  return JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === '$id' || key === 'examples' ? undefined : value)))
}

function oncePerSchema<R, T>(compile: (schema: object, route: R) => T): (schema: object, route: R) => T {
  const compiled = new WeakMap<object, T>()
  return (schema, route) => {
    const known = compiled.get(schema) ?? compile(unnamed(schema), route)
    compiled.set(schema, known)
    return known
  }
}

function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}
