import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { lint } from './openapi-lint.ts'

test('D11: openapi.json has no error and no warning by redocly’s recommended rules', () => {
  expect(lint(fileURLToPath(new URL('../docs/openapi.json', import.meta.url)))).toEqual([])
})
