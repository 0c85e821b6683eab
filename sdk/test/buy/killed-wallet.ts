import { buyer } from '../../src/buy/index.ts'

/** A process that is killed while its wallet pays. */
const { URL: url = '', DIRECTORY = '' } = process.env
const wallet = (): Promise<string> => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => undefined)
}
await buyer({ wallet, maxSatPerRequest: 1_000, maxSatPerDay: 10, store: DIRECTORY }).fetch(url)
