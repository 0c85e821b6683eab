import type { FastifyInstance } from 'fastify'
import { openApiDocument } from '../../../contract/src/openapi.ts'
import { publicOperations } from '../../../contract/src/operations.ts'
import { interactiveDocs } from './interactive-docs.ts'

/** A path, not PUBLIC_URL: the interactive page may only call the origin it was loaded from. */
const SERVERS = [{ url: '/', description: 'This deployment.' }]

/** The contract as an OpenAPI document, for programs and for the interactive page. */
export async function addApiDocument(app: FastifyInstance): Promise<void> {
  const document = openApiDocument(publicOperations, SERVERS)
  const text = JSON.stringify(document)
  app.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(text))
  await app.register(interactiveDocs(document))
}
