import { afterEach, expect, test, vi } from 'vitest'
import { unboundAnswer } from '../../src/paywall/gate/challenges.ts'

afterEach(() => vi.restoreAllMocks())

test('C79: if bodies fill the memory for them, the seller learns what that means and what to do', () => {
  const lines: string[] = []
  vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
  expect(unboundAnswer('busy', { nodeId: 'node_a', amountSat: 25 }, false, 'paywall').status).toBe(503)
  expect(lines).toEqual([
    'boltyard paywall: x402: the memory for request bodies is full, so x402 is not available for new requests with larger bodies right now. If this is normal traffic, set a smaller `maxBodyBytes` or run more processes.',
  ])
})
