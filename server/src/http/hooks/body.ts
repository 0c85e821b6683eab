import type { FastifyInstance } from 'fastify'
import { Problem } from '../../problems.ts'

const MAX_DEPTH = 32
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Accepts only strict JSON. Fastify's parser would turn invalid UTF-8 into replacement characters and accept half a surrogate pair, so we
 * would store something other than what was sent.
 */
export function acceptOnlyJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, (body as Buffer).length === 0 ? undefined : parseStrictly(body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })
}

export function parseStrictly(bytes: Buffer): unknown {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch {
    throw new Problem('bad_request', 'The body is not valid UTF-8 JSON.')
  }
  checkValue(value, 0)
  return value
}

function checkValue(value: unknown, depth: number): void {
  if (depth > MAX_DEPTH) throw new Problem('bad_request', 'The body is nested too deeply.')
  if (typeof value === 'string' && !value.isWellFormed())
    throw new Problem('bad_request', 'The body contains an unpaired surrogate.')
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    if (name === '__proto__') throw new Problem('bad_request', 'The body must not contain a field named __proto__.')
    checkValue(name, depth)
    checkValue(member, depth + 1)
  }
}
