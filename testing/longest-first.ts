import { statSync } from 'node:fs'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const ORDER = ['crash', 'process', 'browser', 'interop', 'api', 'unit']

/** If a long file starts last, the whole run waits for it. Within a project, longer files usually take longer. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project }: TestSpecification): number => ORDER.indexOf(project.name)
    const bytes = ({ moduleId }: TestSpecification): number => statSync(moduleId).size
    return files.toSorted((one, other) => rank(one) - rank(other) || bytes(other) - bytes(one))
  }
}
