import { relative } from 'node:path'
import type { Reporter, TestModule, Vitest } from 'vitest/node'

const SHOWN = 10

/** Prints the slowest files at the end of a run, including the time to load them. */
export default class SlowestFiles implements Reporter {
  #root = ''

  onInit({ config }: Vitest): void {
    this.#root = config.root
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.length <= SHOWN) return
    const seconds = (module: TestModule): number => {
      const { collectDuration, duration } = module.diagnostic()
      return (collectDuration + duration) / 1000
    }
    const slowest = modules.toSorted((one, other) => seconds(other) - seconds(one)).slice(0, SHOWN)
    const lines = slowest.map((module) => `${seconds(module).toFixed(1).padStart(8)} s  ${relative(this.#root, module.moduleId)}`)
    process.stdout.write(`\n The ${SHOWN} slowest files\n${lines.join('\n')}\n`)
  }
}
