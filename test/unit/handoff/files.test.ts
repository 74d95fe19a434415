import { realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { loadFiles } from "../../../.opencode/baton/handoff/files.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"

const setUp = () => {
  const root = realpathSync(temporaryFolder())
  const write = (path: string, content = "one\n"): void => writeFileSync(join(root, path), content)
  const load = (paths: readonly string[], budget = { maxFiles: 2, maxBytes: 1024 }) =>
    loadFiles(
      { root, base: root },
      paths.map((path) => ({ path })),
      { budget },
    )
  return { write, load }
}

test(
  promised(["handoff.C4", "handoff.E2"], "what is named when the budget is used up is not even looked at"),
  async () => {
    const { write, load } = setUp()
    for (const name of ["a.ts", "b.ts", "c.ts"]) write(name)
    const { references, leftOut } = await load(["a.ts", "b.ts", "c.ts", "gone.ts", "@alice"])
    expect(references).toEqual([{ path: "a.ts" }, { path: "b.ts" }])
    const reason = "it is beyond the budget of 2 files"
    expect(leftOut).toEqual([
      { path: "c.ts", reason },
      { path: "gone.ts", reason },
    ])
  },
)

test(promised(["handoff.C4", "handoff.E2"], "files that do not fit are not all opened to find that out"), async () => {
  const { write, load } = setUp()
  const large = Array.from({ length: 20 }, (_, index) => `large${index}.ts`)
  for (const name of large) write(name, "x\n".repeat(2_000))
  write("small.ts")
  const early = await load([...large.slice(0, 3), "small.ts"])
  expect(early.references).toEqual([{ path: "small.ts" }])
  const { references, leftOut } = await load([...large, "small.ts"])
  expect(references).toEqual([])
  expect(leftOut.filter(({ reason }) => reason.endsWith(" KB"))).toHaveLength(8)
  expect(leftOut.filter(({ reason }) => reason.endsWith(" files"))).toHaveLength(13)
})
