import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { promised, REQUIREMENTS } from "../requirements.ts"
import { REPOSITORY } from "../support/opencode-binary.ts"
import { sourceFiles } from "../support/source-files.ts"

const testFiles = sourceFiles("test", ".test.ts").map((path) => ({
  path,
  text: readFileSync(join(REPOSITORY, path), "utf8"),
}))

const CITATION = /promised\(\s*(\[[^\]]*\]|"[^"]*")/g

const citedIn = (text: string): string[] =>
  [...text.matchAll(CITATION)].flatMap(([, ids]) => [...(ids ?? "").matchAll(/"([^"]+)"/g)].map(([, id]) => id ?? ""))

test(promised("repo.A4", "every requirement is cited by a test, and every cited one exists"), () => {
  const cited = new Set(testFiles.flatMap(({ text }) => citedIn(text)))
  const known = new Set<string>(Object.keys(REQUIREMENTS))
  expect(
    [...known].filter((id) => !cited.has(id)),
    "requirements that no test cites",
  ).toEqual([])
  expect(
    [...cited].filter((id) => !known.has(id)),
    "citations of unknown requirements",
  ).toEqual([])
})

test(promised("repo.A4", "no test is focused, put off, or waits for a fixed time"), () => {
  const forbidden = /\b(?:test|it|describe)\.(?:only|todo|skip)\(|\bsleep\(\d/
  const offenders = testFiles.filter(({ path, text }) => !path.includes("structure") && forbidden.test(text))
  expect(offenders.map(({ path }) => path)).toEqual([])
})
