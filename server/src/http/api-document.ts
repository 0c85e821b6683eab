import swagger, { type StaticDocumentSpec } from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { openApiDocument } from '../../../contract/src/openapi.ts'
import { publicOperations } from '../../../contract/src/operations.ts'

/** A path, not PUBLIC_URL: the interactive page may only call the origin it was loaded from. */
const SERVERS = [{ url: '/', description: 'This deployment.' }]

/** Serves the contract as an OpenAPI document, for programs and for the interactive page. */
export async function addApiDocument(app: FastifyInstance): Promise<void> {
  const document = openApiDocument(publicOperations, SERVERS)
  // For static documents, the library's types end at OpenAPI 3.0, but it passes the document through unchanged.
  const specification = { document } as unknown as StaticDocumentSpec
  await app.register(swagger, { mode: 'static', specification })
  const text = JSON.stringify(document)
  app.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(text))
}
