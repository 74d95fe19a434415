import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Folders of the longest tests. One that began last would run alone, and a clean checkout knows no earlier durations. */
const LONGEST = /\/(?:e2e\/(?:tour|faults)|storm)\//

const orderOf = ({ project, moduleId }: TestSpecification): number =>
  2 * project.config.sequence.groupOrder + (LONGEST.test(moduleId) ? 0 : 1)

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => orderOf(a) - orderOf(b))
  }
}
