import { existsSync } from "node:fs"
import { join } from "node:path"

export const REPOSITORY = join(import.meta.dirname, "..", "..", "..")

/**
 * For tests that use only the scripted model; benchmarks and the demo go without. 1.18 builds its whole model catalogue for each folder
 * and each start: here it is empty. The memory allocator of OpenCode 1's runtime gives pages back and takes them again some 10,000 times
 * a start: here it is the system's, with which 1.18 needs a quarter less processor time, 1.2.15 a seventh.
 */
export const QUICK_START = { OPENCODE_MODELS_PATH: join(REPOSITORY, "test/fixtures/no-models.json"), Malloc: "1" }

export type OpenCodeBinary = { version: string; path: string }

/** Must match the aliases in test/tools/package.json. */
const VERSIONS = { oldest: "1.2.15", newest: "1.18.33", two: "2.0.15" } as const

/**
 * The real OpenCode at one end of the supported 1.x versions, or of the 2.x line.
 *
 * @throws when npm has not installed it: an end-to-end test without OpenCode must fail and not be skipped
 */
const locateOpenCode = (name: keyof typeof VERSIONS): OpenCodeBinary => {
  const folder = `opencode-${name}-${process.platform}-${process.arch}`
  const path = join(REPOSITORY, "node_modules", folder, "bin", "opencode")
  if (!existsSync(path)) {
    throw new Error(
      `OpenCode ${VERSIONS[name]} is not installed: expected ${path}. Run \`npm ci\`; ${process.platform}-${process.arch} must be among the optionalDependencies of test/tools/package.json.`,
    )
  }
  return { version: VERSIONS[name], path }
}

export const OLDEST = locateOpenCode("oldest")
export const NEWEST = locateOpenCode("newest")
/** Built for Linux on x64 alone, as far as npm has it. */
export const HAS_OPENCODE_2 = `${process.platform}-${process.arch}` === "linux-x64"
export const openCode2 = (): OpenCodeBinary => locateOpenCode("two")
/** Tells whether plugins are of the second kind, and nothing is installed for them. */
export const isLine2 = ({ version }: Pick<OpenCodeBinary, "version">): boolean => version.startsWith("2.")

/**
 * Versions between the ends, which `scripts/test --matrix` installs: `VERSION=PATH` of each, separated by commas.
 *
 * @throws when a binary is missing
 */
const readMatrix = (matrix = process.env.BATON_MATRIX ?? ""): OpenCodeBinary[] =>
  matrix
    .split(",")
    .filter(Boolean)
    .map((entry) => {
      const [version = "", path = ""] = entry.split("=")
      if (existsSync(path)) return { version, path }
      throw new Error(`OpenCode ${version} is not at '${path}': run ./scripts/test --matrix, which installs it`)
    })

const matrix = readMatrix()
export const IS_MATRIX = matrix.length > 0

/** Both ends of the supported range, or the versions of the matrix: every end-to-end promise is tested on each. */
export const BOTH_ENDS: readonly OpenCodeBinary[] = IS_MATRIX ? matrix : [OLDEST, NEWEST]

/** OpenCode 2, where there is a binary of it; none in a run of the matrix. */
export const LINE_2: readonly OpenCodeBinary[] = HAS_OPENCODE_2 && !IS_MATRIX ? [openCode2()] : []

/** Both ends of OpenCode 1, and OpenCode 2: what both lines serve is tested on each. */
export const ALL_LINES: readonly OpenCodeBinary[] = [...BOTH_ENDS, ...LINE_2]

/** Plugin tools can ask the user in this version: from 1.4 to 1.15.4 OpenCode gives them an effect instead of a promise. */
export const canToolsAsk = ({ version }: OpenCodeBinary): boolean => {
  const [, minor = 0, patch = 0] = version.split(".").map(Number)
  return minor < 4 || minor > 15 || (minor === 15 && patch > 4)
}
