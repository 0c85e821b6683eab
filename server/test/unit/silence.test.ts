import { afterEach, expect, test, vi } from 'vitest'
import { silent } from '../../../testing/kubernetes/silent.ts'
import { silenceReporter } from '../../src/nodes/silence.ts'

afterEach(() => void vi.useRealTimers())

test('a node that did not answer a request is checked at once, and not at each of a thousand requests', () => {
  vi.useFakeTimers()
  const woken: string[] = []
  const report = silenceReporter(async (nodeId) => void woken.push(nodeId), silent)
  for (let request = 0; request < 1_000; request++) report('node_a')
  report('node_b')
  expect(woken).toEqual(['node_a', 'node_b'])
  vi.advanceTimersByTime(10_000)
  report('node_a')
  expect(woken).toEqual(['node_a', 'node_b', 'node_a'])
})
