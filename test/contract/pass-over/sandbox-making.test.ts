import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { passFolder } from "../../../.opencode/baton/pass-over/sandbox/stored.ts"
import { promised } from "../../requirements.ts"
import { HELD_TO_MODES } from "../../support/faults/fault-table.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { openFeaturePasses } from "../../support/opencode/feature-passes.ts"
import { BOTH_ENDS, REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { createPassProject, passPlace, storedText, succeed, writeFiles } from "../../support/opencode/pass-project.ts"
import { idOf } from "../../support/opencode/pass-sandboxes.ts"

const NOTHING = { kind: "changes", modifications: [], skipped: [], recovered: [], leftAlone: [] }
const CAN_MODIFY = { canModify: true }

describe("the sandbox of a pass is made while its child is asked for its first step", () => {
  test.each([
    ["at once", false],
    ["when it was made to its end", true],
  ])(
    promised("pass-over.B2", "where no tool was let in nothing has changed, and nothing of the sandbox stays, %s"),
    async (_, isMade) => {
      const { root, passes, connect } = createPassProject()
      const { ready } = succeed(await passes.create("p1", CAN_MODIFY))
      if (isMade) await ready
      expect(await passes.collect("p1")).toEqual(NOTHING)
      expect(["copy", "files"].filter((name) => existsSync(passPlace(root, "p1", name)))).toEqual([])
      expect(await connect().pending()).toEqual([])
    },
  )

  test(promised("pass-over.B1", "what was changed before the sandbox was made is in no result"), async () => {
    const { root, passes } = createPassProject()
    const made = succeed(await passes.create("p1", CAN_MODIFY))
    const opened = passes.ready("p1")
    writeFiles(root, { "a.txt": "the user's\n" })
    await opened
    writeFiles(made.sandbox ?? "", { "src/b.txt": "the child's\n" })
    const { modifications } = succeed(await passes.collect("p1"))
    expect(modifications.map(({ path }) => path)).toEqual(["src/b.txt"])
  })

  test(promised("pass-over.B3", "what a killed process's git left locked holds no result up"), async () => {
    const { root, begin, passes } = createPassProject()
    await begin("p1", { writes: { "a.txt": "the child's\n" } })
    writeFiles(passPlace(root, "p1", "files", "git"), { "index.lock": "" })
    const { modifications } = succeed(await passes.collect("p1"))
    expect(modifications.map(({ path }) => path)).toEqual(["a.txt"])
    writeFiles(passPlace(root, "p1", "files", "store"), { "current.index.lock": "", "staged.index.lock": "" })
    expect(succeed(await passes.apply("p1"))).toMatchObject({ complete: true })
  })

  test(
    promised("pass-over.B3", "where the sandbox cannot be made, a tool is told, and nothing of it stays"),
    async () => {
      const { root, passes, connect } = createPassProject()
      // A file at the path of the sandbox.
      writeFiles(passPlace(root, "p1"), { copy: "in the way" })
      const made = succeed(await passes.create("p1", CAN_MODIFY))
      const reason = expect.stringContaining("copying the files of pass")
      for (const refusal of [await passes.ready("p1"), await made.ready])
        expect(refusal).toMatchObject({ kind: "refused", code: "failed", reason })
      expect(await connect().pending()).toEqual([])
      expect(succeed(await connect().create("p1", CAN_MODIFY)).kind).toBe("created")
    },
  )
})

const asideOf = (root: string): string => join(root, ".opencode", "state", "pass-over", ".removed")
const leftAside = (root: string): string[] => (existsSync(asideOf(root)) ? readdirSync(asideOf(root)) : [])

const changeAndEnd = async ({ root, store }: ReturnType<typeof createPassProject>) => {
  const { modifications } = await store("p1", { "src/b.txt": "the child's\n" })
  expect(modifications.map(({ path }) => path)).toEqual(["src/b.txt"])
  return ["copy", "files/git"].filter((path) => existsSync(passPlace(root, "p1", path)))
}

describe("the sandbox of a pass that is over", () => {
  test(
    promised(
      "pass-over.B2",
      "the sandbox of a pass that is over is gone from its place at once, and soon from the disk; changes stay",
    ),
    async () => {
      const project = createPassProject()
      expect(await changeAndEnd(project)).toEqual([])
      await expect.poll(() => leftAside(project.root)).toEqual([])
      const { modifications } = succeed(await project.connect().collect("p1"))
      expect(modifications.map(({ path }) => path)).toEqual(["src/b.txt"])
      expect(storedText(project.root, "p1", modifications[0]?.new_hash)).toBe("the child's\n")
    },
  )

  test(
    promised("pass-over.B2", "the next attempt of a pass whose sandbox git still made has all its files"),
    async () => {
      const { root, passes } = createPassProject()
      for (let attempt = 0; attempt < 3; attempt++) {
        await passes.create("p1", CAN_MODIFY)
        expect(await passes.collect("p1")).toEqual(NOTHING)
      }
      const { ready } = succeed(await passes.create("p1", CAN_MODIFY))
      expect(await ready).toBeUndefined()
      await expect.poll(() => readdirSync(asideOf(root))).toEqual([])
      expect(existsSync(passPlace(root, "p1", "copy", "a.txt"))).toBe(true)
    },
  )

  test(promised("pass-over.B2", "a sandbox is deleted in its place where it cannot be put aside"), async () => {
    const project = createPassProject()
    writeFiles(join(asideOf(project.root), ".."), { ".removed": "in the way" })
    expect(await changeAndEnd(project)).toEqual([])
    expect(readFileSync(asideOf(project.root), "utf8")).toBe("in the way")
  })

  test(
    promised(
      "pass-over.B3",
      "the sandbox of a pass that is over is deleted by the next start where its process had no time to",
    ),
    async () => {
      const passes = openFeaturePasses()
      writeFiles(asideOf(passes.root), { "copy-1/copy/src/b.txt": "bee\n", "copy-1/manifest.json": "[]" })
      passes.start()
      await expect.poll(() => leftAside(passes.root)).toEqual([])
    },
  )

  test.each(BOTH_ENDS)(
    promised("pass-over.B2", "a sandbox goes with folders that may not be written in, on OpenCode $version"),
    ({ path }) => {
      const folder = join(temporaryFolder(), "gone")
      writeFiles(folder, { "mod/a@v1/a.go": "package a\n" })
      chmodSync(join(folder, "mod/a@v1"), 0o555)
      const create = join(REPOSITORY, ".opencode/baton/pass-over/sandbox/create.ts")
      const script = `await (await import(${JSON.stringify(create)})).removeAll(${JSON.stringify(folder)})`
      const [program, ...args] = [...HELD_TO_MODES, path, "-e", script]
      execFileSync(program, args, { env: { ...process.env, BUN_BE_BUN: "1" } })
      expect(existsSync(folder)).toBe(false)
    },
  )

  test(
    promised(
      "pass-over.B3",
      "the sandbox of a pass that is over is not the start's to delete where this process discards it meanwhile",
    ),
    async () => {
      const { root, passes } = createPassProject()
      const recovered = createDeferred<void>()
      writeFiles(asideOf(root), { "sandbox-1/copy/a.txt": "an earlier process's\n" })
      const swept = passes.sandboxes.sweep(recovered.promise)
      writeFiles(asideOf(root), { "sandbox-2/copy/a.txt": "this one's\n" })
      recovered.resolve()
      await swept
      expect(leftAside(root)).toEqual(["sandbox-2"])
    },
  )

  test(
    promised(
      "pass-over.B3",
      "the sandbox of a pass that is over goes behind its record: cut off in between, no file looks deleted",
    ),
    async () => {
      const { root, passes, connect } = createPassProject()
      const { ready } = succeed(await passes.create("p1", CAN_MODIFY))
      await ready
      const folder = passFolder(createStateFolder(root), idOf("p1"))
      rmSync(folder.base)
      rmSync(folder.sandbox, { recursive: true })
      const recovered = ["removed a sandbox that was never finished"]
      rmSync(passPlace(root, "p1", "work.lock"))
      expect(await connect().collect("p1")).toMatchObject({ kind: "changes", modifications: [], recovered })
      expect(await connect().pending()).toEqual([])
    },
  )
})
