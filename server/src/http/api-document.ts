import type { FastifyInstance } from 'fastify'
import { openApiDocument } from '../../../contract/src/openapi.ts'
import { publicOperations } from '../../../contract/src/operations.ts'

/** A path, not PUBLIC_URL: tools that load the document resolve it against the origin they loaded it from. */
const SERVERS = [{ url: '/', description: 'This deployment.' }]

/** Serves the contract as an OpenAPI document. It is built on the first request, because few processes receive one. */
export function addApiDocument(app: FastifyInstance): void {
  let text: string | undefined
  app.get('/openapi.json', (_request, reply) => {
    text ??= JSON.stringify(openApiDocument(publicOperations, SERVERS))
    return reply.type('application/json; charset=utf-8').send(text)
  })
}
