import { expect, test } from 'vitest'
import { SERVER } from '../../../testing/bundles.ts'
import { eventually, send, startServer } from '../support/server.ts'

/** Says when connections to the store are looked for, and the first time that it is among more than there can be. */
const WATCH = `
  const { indexOf } = Array.prototype
  let isSeen = false
  let isTold = false
  Array.prototype.indexOf = function (...wanted) {
    if (wanted[0]?.queue && !isSeen) { isSeen = true; process.stderr.write('connections are looked for\\n') }
    if (wanted[0]?.queue && !isTold && this.length > 100) { isTold = true; process.stderr.write('among more than a hundred\\n') }
    return Reflect.apply(indexOf, this, wanted)
  }`

test('a statement costs the same however many there were before: few at a time, and more than there are connections', async () => {
  const server = await startServer({
    store: 'embedded',
    command: [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(WATCH)}`, SERVER],
    env: { LOG_LEVEL: 'error', RATE_LIMIT_MAX: '1000000' },
  })
  const { apiKey } = server.firstRun
  const atOnce = async (callers: number, requests: number): Promise<void> => {
    let left = requests
    const work = async (): Promise<void> => {
      while (left-- > 0) expect((await send(server.port, 'GET', '/v1/nodes', { token: apiKey })).status).toBe(200)
    }
    await Promise.all(Array.from({ length: callers }, work))
  }
  await atOnce(20, 100)
  await atOnce(2, 1_000)
  await atOnce(60, 2_000)
  await atOnce(2, 1_000)
  await eventually(() => server.stderr.includes('connections are looked for'), 'the watch to see anything')
  expect(server.stderr).not.toContain('among more than a hundred')
})
