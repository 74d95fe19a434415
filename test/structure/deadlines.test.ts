import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"

/** Of docs/faults.md: no hook keeps OpenCode waiting for longer. */
const MOST_MS = 3_000

test(promised("faults.F2", "no hook has a deadline of more than 3 s"), () => {
  const files = sourceFiles(".opencode/baton").filter((path) => path.endsWith("/hooks.ts"))
  const deadlines = files.flatMap((path) =>
    [...readFileSync(path, "utf8").matchAll(/^const (\w*DEADLINE_MS) = ([\d_]+)$/gm)].map(([, name, value]) => ({
      path,
      name,
      milliseconds: Number(value?.replaceAll("_", "")),
    })),
  )
  expect(deadlines.length).toBeGreaterThan(4)
  expect(deadlines.filter(({ milliseconds }) => !(milliseconds <= MOST_MS))).toEqual([])
})
