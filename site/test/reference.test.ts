import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type OpenApi, referencePages } from '../src/reference.ts'

const api = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as OpenApi
const pages = referencePages(api)
/** The text of each operation: from its endpoint to the next heading. */
const texts = new Map(
  pages
    .flatMap(({ text }) => text.split(/^## /m))
    .flatMap((text) => [...text.matchAll(/^`([A-Z]+ \/\S+)`$/gm)].map(([, endpoint = '']) => [endpoint, text] as const)),
)
const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ endpoint: `${method.toUpperCase()} ${path}`, operation })),
)
const commandOf = (text: string): string => /```sh\n([\s\S]*?)\n```/.exec(text)?.[1] ?? ''

describe('C89: the API reference', () => {
  test('C89: every operation is described, with an example', () => {
    expect(operations.length).toBeGreaterThan(50)
    expect(operations.filter(({ endpoint }) => !commandOf(texts.get(endpoint) ?? '').startsWith('curl '))).toEqual([])
  })

  test('C89: an operation that takes an Idempotency-Key says so, and its example sends one', () => {
    const taking = operations.filter(({ operation }) =>
      operation.parameters?.some(({ $ref }) => $ref?.endsWith('/IdempotencyKey')),
    )
    expect(taking.length).toBeGreaterThan(2)
    for (const { endpoint } of taking) {
      expect(texts.get(endpoint)).toContain('| `Idempotency-Key` | header |')
      expect(commandOf(texts.get(endpoint) ?? '')).toMatch(/-H 'Idempotency-Key: \S+'/)
    }
  })

  test('C89: every request body’s fields are in the text, and every error that only some calls return', () => {
    const create = texts.get('POST /v1/gateway/payments') ?? ''
    for (const field of Object.keys(api.components.schemas.CreatePaymentParams?.properties ?? {}))
      expect(create).toContain(`| \`${field}\` |`)
    expect(create).toMatch(/\| 409 \| `idempotency_conflict` \|/)
    expect(texts.get('POST /v1/nodes')).toMatch(/\| 402 \| `insufficient_credit` \|/)
  })

  test('every example is valid shell, and what it sends is JSON', () => {
    const commands = operations.map(({ endpoint }) => commandOf(texts.get(endpoint) ?? ''))
    execFileSync('bash', ['-n'], { input: commands.join('\n') })
    const bodies = execFileSync('bash', [], {
      input: `curl() { while [ $# -gt 0 ]; do [ "$1" = -d ] && printf '%s\\n' "$2"; shift; done; true; }\n${commands.join('\n')}`,
      encoding: 'utf8',
    })
    const sent = bodies.trim().split('\n')
    expect(sent.length).toBe(operations.filter(({ operation }) => operation.requestBody).length)
    for (const body of sent) expect(typeof JSON.parse(body)).toBe('object')
  })
})
