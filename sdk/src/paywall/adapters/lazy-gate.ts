import { rememberOptions } from '../advertised.ts'
import { unavailable } from '../answers.ts'
import { type Decision, Gate, type Pass } from '../gate/gate.ts'
import type { PaywallOptions } from '../options.ts'
import { warn } from '../trouble.ts'
import type { Visit } from '../visit.ts'

export type LazyGate<R> = { recall(visit: Visit<R>): Pass | undefined; decide(visit: Visit<R>): Promise<Decision> } & Ready

export type Ready = {
  /** Call it at startup. If payments cannot be accepted, it rejects with what to change: the key, base URL, node or description. */
  ready(): Promise<void>
}

/** Creates the gate at the first request, so that a build that imports the shop needs no key. */
export function lazyGate<R>(options: PaywallOptions<R>): LazyGate<R> {
  let gate: Gate<R> | undefined
  const build = (): Gate<R> => {
    gate ??= new Gate(options)
    return gate
  }
  const ready = async (): Promise<void> => build().ready()
  rememberOptions(ready, options)
  return {
    recall: (visit) => gate?.recall(visit),
    decide: async (visit) => {
      try {
        build()
      } catch (error) {
        const { message } = error as Error
        warn(`options ${message}`, message)
        return { pass: false, ...unavailable(false, 5) }
      }
      return build().decide(visit)
    },
    ready,
  }
}
