import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createLogger } from '../../src/platform/log.ts'

test.each([true, false])(
  'the log goes to the given output, as text on a terminal and otherwise as JSON (terminal: %s)',
  async (isTTY) => {
    const output = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY })
    const logger = await createLogger('info', output)
    logger.info({ nodeId: 'node_a' }, 'a line for this test')
    const [line] = await once(output, 'data')
    expect(line).toContain('a line for this test')
    expect(line.startsWith('{')).toBe(!isTTY)
  },
)
