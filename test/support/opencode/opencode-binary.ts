import { existsSync } from "node:fs"
import { join } from "node:path"

export const REPOSITORY = join(import.meta.dirname, "..", "..", "..")

/**
 * For the environment of a test that needs no model but its scripted one: 1.18 builds its whole catalogue of models for each
 * folder and each start, 1 to 2 s of its processor time. What is measured or shown to users has the catalogue.
 */
export const NO_CATALOGUE = { OPENCODE_MODELS_PATH: join(REPOSITORY, "test/fixtures/no-models.json") }

export type OpenCodeBinary = { version: string; path: string }

/** Keep in step with the aliases in package.json. */
const VERSIONS = { oldest: "1.2.15", newest: "1.18.33" } as const

/**
 * The real OpenCode of one end of the supported range.
 *
 * @throws when npm has not installed it: an end-to-end test without its subject must fail, never skip
 */
const locateOpenCode = (name: "oldest" | "newest"): OpenCodeBinary => {
  const folder = `opencode-${name}-${process.platform}-${process.arch}`
  const path = join(REPOSITORY, "node_modules", folder, "bin", "opencode")
  if (!existsSync(path)) {
    throw new Error(
      `OpenCode ${VERSIONS[name]} is not installed: expected ${path}. Run \`npm ci\`; ${process.platform}-${process.arch} must be among the optionalDependencies of package.json.`,
    )
  }
  return { version: VERSIONS[name], path }
}

export const OLDEST = locateOpenCode("oldest")
export const NEWEST = locateOpenCode("newest")

/**
 * Versions between the ends, which `scripts/test --matrix` installs: `VERSION=PATH` of each, with commas between them.
 *
 * @throws when a binary is not where it should be
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

/** Both ends of the supported range, or the versions of the matrix: every end-to-end promise is held on each. */
export const BOTH_ENDS: readonly OpenCodeBinary[] = IS_MATRIX ? matrix : [OLDEST, NEWEST]

/** Whether a plugin's tool can ask the user there: from 1.4 to 1.15.4 OpenCode gives it an effect in place of a promise. */
export const canToolsAsk = ({ version }: OpenCodeBinary): boolean => {
  const [, minor = 0, patch = 0] = version.split(".").map(Number)
  return minor < 4 || minor > 15 || (minor === 15 && patch > 4)
}
