import { beforeEach, describe, expect, test } from 'vitest'
import { memoryStore, type PurchaseStore } from '../../src/buy/index.ts'
import { acquireLock, type Lock } from '../../src/buy/store/lock.ts'

/** Only one call at a time holds the lock of a purchase, even after the lock's entry was removed and its number is used again. */

let store: PurchaseStore
beforeEach(() => {
  store = memoryStore()
})

const acquire = (through = store): Promise<Lock> => acquireLock(through, 'k', new AbortController().signal)
/** Does not wait if the lock is held. */
const isFree = (): Promise<boolean> =>
  acquireLock(store, 'k', AbortSignal.abort()).then(
    () => true,
    () => false,
  )
/** What another machine does with the entry of an owner that has been silent for too long. */
async function takeForDead(): Promise<void> {
  for (const name of await store.list('lock.')) await store.set(name, JSON.stringify({ token: 'dead', isReleased: true }))
}

describe('an owner that has removed its lock', () => {
  test('does not release the lock of the next one', async () => {
    const first = await acquire()
    await first.remove()
    const second = await acquire()
    await first.release()
    expect([await first.isHeld(), await second.isHeld(), await isFree()]).toEqual([false, true, false])
  })

  test('leaves the store alone from then on', async () => {
    const first = await acquire()
    await first.remove()
    const text = JSON.stringify(await Promise.all((await store.list('')).map((name) => store.get(name))))
    const touched: string[] = []
    for (const method of ['set', 'delete', 'add'] as const)
      store[method] = async (name: string) => {
        touched.push(name)
        return true as never
      }
    await first.release()
    await first.remove()
    expect([text, touched]).toEqual(['[]', []])
  })
})

describe('an owner that was assumed to be dead', () => {
  test('does not hold the lock again when its number is used again', async () => {
    const dead = await acquire()
    await takeForDead()
    await (await acquire()).remove()
    const next = await acquire()
    expect([await dead.isHeld(), await next.isHeld()]).toEqual([false, true])
  })

  test.each(['release', 'remove'] as const)('does not take the lock from the next owner by %s', async (end) => {
    const dead = await acquire()
    await takeForDead()
    await (await acquire()).remove()
    const next = await acquire()
    await dead[end]()
    expect([await next.isHeld(), await isFree()]).toEqual([true, false])
  })
})

test('a removed lock is free, and a lock that could not be removed is released', async () => {
  await (await acquire()).remove()
  const second = await acquire()
  const remove = store.delete
  store.delete = () => Promise.reject(new Error('unreachable'))
  await second.remove()
  await second.release()
  store.delete = remove
  expect(await isFree()).toBe(true)
})

test('a process that finds that the lock has just been removed begins with the first number, like everyone else', async () => {
  const first = await acquire()
  let isRemoved = false
  const slow: PurchaseStore = {
    ...store,
    get: async (name) => {
      if (!isRemoved) await first.remove()
      isRemoved = true
      return store.get(name)
    },
  }
  const second = await acquire(slow)
  expect([await second.isHeld(), await store.list('lock.')]).toEqual([true, ['lock.k.00000001']])
})
