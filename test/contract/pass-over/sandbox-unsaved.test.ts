import { expect, test, vi } from "vitest"
import { promised } from "../../requirements.ts"
import { createPassProject, readIn, succeed, writeFiles } from "../../support/opencode/pass-project.ts"

const disk = vi.hoisted(() => ({ isFull: (_path: string): boolean => false }))

vi.mock("../../../.opencode/baton/host/state.ts", async (original) => {
  const real = await original<typeof import("../../../.opencode/baton/host/state.ts")>()
  const createStateFolder: typeof real.createStateFolder = (root) => {
    const state = real.createStateFolder(root)
    const write: typeof state.write = async (path, ...rest) => {
      if (disk.isFull(path)) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" })
      await state.write(path, ...rest)
    }
    return { ...state, write }
  }
  return { ...real, createStateFolder }
})

test(
  promised("pass-over.B2", "a file whose apply could not be noted is taken back and held, not called applied"),
  async () => {
    const { root, begin, passes } = createPassProject({ files: { "a.txt": "a\n", "b.txt": "b\n" } })
    const { sandbox } = await begin("p1")
    writeFiles(sandbox, { "a.txt": "A\n", "b.txt": "B\n" })
    succeed(await passes.collect("p1"))
    let saves = 0
    disk.isFull = (path) => path.endsWith("pass.json") && ++saves === 1
    const applied = succeed(await passes.apply("p1", { allOrNothing: false }))
    expect(applied.files.map(({ path, outcome }) => [path, outcome])).toEqual([
      ["a.txt", "conflict"],
      ["b.txt", "applied"],
    ])
    expect([readIn(root, "a.txt"), readIn(root, "b.txt"), applied.held]).toEqual(["a\n", "B\n", 1])
    expect(succeed(await passes.apply("p1"))).toMatchObject({ complete: true, held: 0 })
    expect(readIn(root, "a.txt")).toBe("A\n")
  },
)
