import { appendFileSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { stripVTControlCharacters } from "node:util"
import type { Reporter, SerializedError, TestCase, TestModule, TestSpecification, TestSuite, Vitest } from "vitest/node"
import { REPLAY } from "./effort.ts"

/** Versions between the ends are tested after the ends and need a file of their own: `./scripts/test --all`. */
const FILE = process.env.BATON_MATRIX ? ".cache/failures-matrix.md" : ".cache/failures.md"
const QUICK_PROJECTS: readonly string[] = ["structure", "unit"]

/** Comparisons of long texts give long differences; the report at the end has them whole. */
const MAX_CHARACTERS = 3_000

const describeFailure = (name: string, errors: readonly SerializedError[]): string => {
  const texts = errors.map(({ message, diff, stacks }) => {
    const [at] = stacks ?? []
    return [message, diff, at && `at ${at.file}:${at.line}`].filter(Boolean).join("\n")
  })
  const told = stripVTControlCharacters(texts.join("\n\n"))
  const half = MAX_CHARACTERS / 2
  // The end of a text may be the screen that was seen.
  const shown = told.length > MAX_CHARACTERS ? `${told.slice(0, half)}\n…\n${told.slice(-half)}` : told
  return `## ${name}\n\n${shown}\n\n`
}

/**
 * Writes each failure at once to standard error and .cache/failures.md, so that a run that is killed has already reported it.
 * After a failure in a quick test the slow projects do not start.
 */
export default class FailureReporter implements Reporter {
  #vitest: Vitest | undefined
  #quickToCome = 0
  #hasSlow = false
  #hasQuickFailure = false

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
    mkdirSync(dirname(FILE), { recursive: true })
    writeFileSync(FILE, `# Failures of the run with ${REPLAY}\n\n`)
    vitest.logger.log(`Random tests draw from ${REPLAY}; failures go to ${FILE} as they happen.\n`)
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#quickToCome = specifications.filter(({ project }) => QUICK_PROJECTS.includes(project.name)).length
    this.#hasSlow = this.#quickToCome < specifications.length
    this.#hasQuickFailure = false
  }

  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result()
    if (state === "failed") this.#add(test.module, test.fullName, errors)
  }

  /** A `beforeAll` that failed. */
  onTestSuiteResult(suite: TestSuite): void {
    const errors = suite.errors()
    if (errors.length > 0) this.#add(suite.module, `${suite.fullName}, set-up`, errors)
  }

  onTestModuleEnd(module: TestModule): void {
    const errors = module.errors()
    if (errors.length > 0) this.#add(module, "the file itself", errors)
    if (QUICK_PROJECTS.includes(module.project.name)) this.#quickToCome--
    if (this.#quickToCome > 0 || !this.#hasQuickFailure || !this.#hasSlow) return
    this.#hasSlow = false
    this.#tell("## The slow tests are not run, since a quick one failed\n\n")
    void this.#vitest?.cancelCurrentRun("test-failure")
  }

  #add({ project, relativeModuleId }: TestModule, name: string, errors: readonly SerializedError[]): void {
    this.#hasQuickFailure ||= QUICK_PROJECTS.includes(project.name)
    this.#tell(describeFailure(`${project.name}: ${relativeModuleId} > ${name}`, errors))
  }

  #tell(text: string): void {
    appendFileSync(FILE, text)
    this.#vitest?.logger.error(`\n${text}`)
  }
}
