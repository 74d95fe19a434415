import { expect, test } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { promised } from "../../requirements.ts"
import {
  connectSandboxes,
  createPassProject,
  readIn,
  succeed,
  writeFiles,
} from "../../support/opencode/pass-project.ts"

test(
  promised("pass-over.B2", "a file whose apply could not be noted is taken back and held, not called applied"),
  async () => {
    const { root, begin, passes } = createPassProject({ files: { "a.txt": "a\n", "b.txt": "b\n" } })
    const { sandbox } = await begin("p1")
    writeFiles(sandbox, { "a.txt": "A\n", "b.txt": "B\n" })
    succeed(await passes.collect("p1"))
    const state = createStateFolder(root)
    let saves = 0
    const write: typeof state.write = async (path, ...rest) => {
      if (path.endsWith("pass.json") && ++saves === 1)
        throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" })
      await state.write(path, ...rest)
    }
    const full = connectSandboxes(root, root, { state: { ...state, write } })
    const applied = succeed(await full.apply("p1", { allOrNothing: false }))
    expect(applied.files.map(({ path, outcome }) => [path, outcome])).toEqual([
      ["a.txt", "conflict"],
      ["b.txt", "applied"],
    ])
    expect([readIn(root, "a.txt"), readIn(root, "b.txt"), applied.held]).toEqual(["a\n", "B\n", 1])
    expect(succeed(await passes.apply("p1"))).toMatchObject({ complete: true, held: 0 })
    expect(readIn(root, "a.txt")).toBe("A\n")
  },
)
