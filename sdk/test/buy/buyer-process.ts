import { buyer, fileStore, type PurchaseStore } from '../../src/buy/index.ts'

/**
 * Buys the resource at URL with the wallet in WALLET. Reports the body or the error, and how many steps there were. Kills itself
 * at the step DIE_AT, if given: every change of the store and every request has a step before it and one after it.
 */
const { URL: url = '', DIRECTORY = '', WALLET = '', DIE_AT = '0' } = process.env
let steps = 0
const step = async <T>(act: () => Promise<T>): Promise<T> => {
  dieIfDue()
  const result = await act()
  dieIfDue()
  return result
}
function dieIfDue(): void {
  if (++steps === Number(DIE_AT)) process.kill(process.pid, 'SIGKILL')
}

const files = fileStore(DIRECTORY)
const store: PurchaseStore = {
  ...files,
  set: (name, text) => step(() => files.set(name, text)),
  add: (name, text) => step(() => files.add(name, text)),
  delete: (name) => step(() => files.delete(name)),
}
const realFetch = globalThis.fetch
globalThis.fetch = (...request) => step(() => realFetch(...request))

const pay = buyer({ wallet: JSON.parse(WALLET), maxSatPerRequest: 1_000, maxSatPerDay: 100_000, store })
const report = await pay
  .fetch(url)
  .then(async (response) => ({ status: response.status, body: await response.text() }))
  .catch(({ code, outcome, message }) => ({ code, outcome, message }))
process.send?.({ ...report, steps })
process.disconnect?.()
