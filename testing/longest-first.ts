import { statSync } from 'node:fs'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const ORDER = ['crash', 'process', 'browser', 'interop', 'api', 'unit']

/** Starts slow files first, because the whole run would wait for one that starts last. In a project, larger files are usually slower. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project }: TestSpecification): number => ORDER.indexOf(project.name)
    const bytes = ({ moduleId }: TestSpecification): number => statSync(moduleId).size
    return files.toSorted((one, other) => rank(one) - rank(other) || bytes(other) - bytes(one))
  }
}
