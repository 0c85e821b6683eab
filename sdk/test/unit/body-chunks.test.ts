import { afterEach, describe, expect, test, vi } from 'vitest'
import { bindWebRequest } from '../../src/paywall/adapters/web-request.ts'
import { BodyBuffer } from '../../src/paywall/body-buffer.ts'
import { BodyMemory, MOST_BODY_BYTES } from '../../src/paywall/gate/body-memory.ts'

const MIB = 1_048_576

/** Binds a body of this many chunks with one byte each. Without `ends`, the body never ends. */
function bound(chunks: number, memory: BodyMemory, { ends = true, bodyTimeoutMs = 600_000 } = {}) {
  let sent = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (sent++ < chunks) controller.enqueue(new Uint8Array(1))
        else if (ends) controller.close()
        else return new Promise(() => undefined)
        return undefined
      },
    },
    { highWaterMark: 0 },
  )
  const request = new Request('http://shop.example/x', { method: 'POST', body, duplex: 'half' } as RequestInit)
  const limits = { maxBodyBytes: MIB, bodyTimeoutMs, signal: undefined, memory }
  return bindWebRequest(request)({ publicUrl: undefined, bindHeaders: [], ...limits })
}

/** How much of the memory is taken. */
function taken(): number {
  let [free, size] = [0, MOST_BODY_BYTES]
  const probe = new BodyMemory(0, true)
  for (; size >= 1; size /= 2) if (probe.reserve(size)) free += size
  probe.release()
  return MOST_BODY_BYTES - free
}

test('C79: a body that comes byte by byte counts with the memory that its chunks take until the handler has read them', async () => {
  const memory = new BodyMemory(MIB, true)
  expect(await bound(20_000, memory)).toMatchObject({ requestHash: expect.any(String) })
  expect(taken()).toBeGreaterThan(20_000 * 200)
  memory.release()
  expect(taken()).toBeLessThan(1_000)
})

test('C79: a body that would take more memory than there is, is refused', async () => {
  const [others, memory] = [new BodyMemory(MIB, true), new BodyMemory(MIB, true)]
  others.reserve(MOST_BODY_BYTES - 2 * MIB)
  expect(await bound(20_000, memory)).toEqual({ unbound: 'busy' })
  others.release()
  memory.release()
})

test('C79: nothing is kept for each chunk by the timer of the body', async () => {
  const races: unknown[] = []
  const { race } = Promise
  Promise.race = function (this: typeof Promise, values: Iterable<unknown>) {
    races.push(values)
    return Reflect.apply(race, this, [values])
  } as typeof race
  const memory = new BodyMemory(MIB, true)
  await bound(1_000, memory).finally(() => {
    Promise.race = race
  })
  memory.release()
  expect(races.length).toBeLessThan(10)
})

test('C79: a body that stops is too slow', async () => {
  const memory = new BodyMemory(MIB, true)
  expect(await bound(5, memory, { ends: false, bodyTimeoutMs: 50 })).toEqual({ unbound: 'too_slow' })
  memory.release()
})

describe('C79: a body that comes with 10 kB in a second, and stops after 100 s', () => {
  afterEach(() => void vi.useRealTimers())

  /** After how many seconds the body is refused, with a timeout of ten seconds. */
  function tooSlowAfterSeconds(isProven: boolean): number | undefined {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const memory = new BodyMemory(MIB, isProven)
    const buffer = new BodyBuffer(MIB, memory)
    let [seconds, lateAfter]: [number, number | undefined] = [0, undefined]
    buffer.expect(10_000, () => {
      lateAfter = seconds
    })
    for (; seconds < 200; seconds++) {
      if (seconds < 100) buffer.add(new Uint8Array(10_000))
      vi.advanceTimersByTime(1_000)
    }
    memory.release()
    return lateAfter
  }

  test('is refused early if it is not paid', () => expect(tooSlowAfterSeconds(false)).toBe(14))
  test('is waited for until it stops if it is paid', () => expect(tooSlowAfterSeconds(true)).toBe(108))
})
