import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventually, temporaryDirectory } from '../../../server/test/support/server.ts'
import { buyer } from '../../src/buy/index.ts'
import { Wire } from '../wire.ts'
import { GOODS, NOTHING, ONCE, WeatherShop } from './shop.ts'

/** A buying process that is killed, at any time, and another one that continues with the same files. */

let shop: WeatherShop
let directory: string
/** Built once, because compiling it costs each of the many processes more than the purchase. */
const program = join(temporaryDirectory(), 'buyer-process.mjs')
beforeAll(async () => {
  shop = await WeatherShop.open()
  const source = fileURLToPath(new URL('buyer-process.ts', import.meta.url))
  await build({ entryPoints: [source], outfile: program, bundle: true, platform: 'node', format: 'esm' })
})
beforeEach(async () => {
  await shop.renew()
  directory = temporaryDirectory()
})

type Report = { status?: number; body?: string; code?: string; outcome?: string; steps: number }
const TWICE = { spent: 2 * ONCE.spent, earned: 2 * ONCE.earned }

/** Undefined if the process was killed. */
async function buys(path: string, more: { dieAt?: number; wallet?: object } = {}): Promise<Report | undefined> {
  const { dieAt = 0, wallet = shop.wallet } = more
  const env = {
    ...process.env,
    ...{ URL: shop.url(path), DIRECTORY: directory, WALLET: JSON.stringify(wallet), DIE_AT: String(dieAt) },
  }
  const child = fork(program, { execArgv: [], env })
  const report = once(child, 'message').then(([message]) => message as Report)
  const ended = once(child, 'exit').then(() => undefined)
  return Promise.race([report, ended])
}

/** Buys in this process. */
async function here(path: string, wallet = shop.wallet): Promise<Omit<Report, 'steps'>> {
  const pay = buyer({ wallet, maxSatPerRequest: 1_000, maxSatPerDay: 100_000, store: directory })
  return pay
    .fetch(shop.url(path))
    .then(async (response) => ({ status: response.status, body: await response.text() }))
    .catch(({ code, outcome }) => ({ code, outcome }))
}

describe('killed at any step', () => {
  /** The steps of a purchase that nothing interrupts. */
  async function stepsOf(path: string): Promise<number> {
    const whole = await buys(path)
    expect(whole).toMatchObject({ status: 200, body: GOODS })
    return whole?.steps ?? 0
  }

  test('a reusable L402 credential: the next process delivers, and one payment was made', async () => {
    const steps = await stepsOf('/l402')
    expect(steps).toBeGreaterThan(20)
    for (let dieAt = 1; dieAt <= steps; dieAt++) {
      await shop.renew()
      directory = temporaryDirectory()
      expect(await buys('/l402', { dieAt }), `step ${dieAt}`).toBeUndefined()
      expect(await here('/l402'), `after step ${dieAt}`).toMatchObject({ status: 200, body: GOODS })
      expect(await shop.moved(), `step ${dieAt}`).toEqual(ONCE)
    }
  })

  test('MPP: the next process delivers unless the first one got the response; it never pays again', async () => {
    const steps = await stepsOf('/mpp')
    let refused = 0
    for (let dieAt = 1; dieAt <= steps; dieAt++) {
      await shop.renew()
      directory = temporaryDirectory()
      expect(await buys('/mpp', { dieAt }), `step ${dieAt}`).toBeUndefined()
      const wasPresented = shop.visits.some(({ authorization }) => authorization !== undefined)
      const next = await here('/mpp')
      if (next?.code !== undefined) refused++
      if (wasPresented && next?.code !== undefined) expect(next).toMatchObject({ code: 'credential_refused', outcome: 'paid' })
      else expect(next, `after step ${dieAt}`).toMatchObject({ status: 200, body: GOODS })
      // After the last step, the response is known to be read, so the next process buys again.
      expect(await shop.moved(), `step ${dieAt}`).toEqual(dieAt === steps ? TWICE : ONCE)
    }
    expect(refused).toBeGreaterThan(0)
  })
})

test('a process that is stopped, not killed, keeps its purchase: another one waits and pays nothing', async () => {
  const wire = await new Wire(shop.market.server.url).open()
  // The wire, a proxy in front of the service, holds the payment until `thaw` is called.
  let thaw = (): void => undefined
  wire.ready = new Promise<void>((resolve) => {
    thaw = resolve
  })
  const slow = { ...shop.wallet, endpointUrl: `${wire.baseUrl.replace(/\/v1$/, '')}/n/${shop.purse.node.id}` }
  const env = { ...process.env, URL: shop.url('/l402'), DIRECTORY: directory, WALLET: JSON.stringify(slow) }
  const child = fork(program, { execArgv: [], env })
  const report = once(child, 'message')
  await eventually(() => wire.seen.length > 0, 'the first question to the node')
  child.kill('SIGSTOP')
  const other = here('/l402', slow)
  await eventually(() => shop.visits.length === 2, 'the other one to ask the shop')
  // The process that holds the lock still exists, so the other buyer has to wait.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  expect([wire.seen.length, await shop.moved()]).toEqual([1, NOTHING])
  thaw()
  child.kill('SIGCONT')
  expect((await report)[0]).toMatchObject({ status: 200, body: GOODS })
  expect(await other).toMatchObject({ status: 200, body: GOODS })
  expect(await shop.moved()).toEqual(ONCE)
})
