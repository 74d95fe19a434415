import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { createPassProject, readIn, succeed, writeFiles } from "../support/pass-project.ts"

const NOTHING = { kind: "changes", modifications: [], leftOut: [] }
const CAN_MODIFY = { canModify: true }

const stateOf = (root: string, ...path: string[]) => join(root, ".opencode", "state", "pass-over", "p1", ...path)

describe("the copy of a pass is made while its child is asked for its first step", () => {
  test(promised("pass-over.B2", "whoever enters finds all of it"), async () => {
    const { root, passes } = createPassProject()
    const begun = succeed(await passes.begin("p1", CAN_MODIFY))
    expect(await passes.enter("p1")).toBeUndefined()
    expect(await begun.made).toBeUndefined()
    for (const path of ["a.txt", "src/b.txt", ".git/HEAD"]) expect(existsSync(join(begun.copy ?? "", path))).toBe(true)
    expect(readIn(root, "a.txt")).toBe("one\ntwo\nthree\n")
  })

  test(promised("pass-over.B2", "where nobody entered nothing has changed, and nothing of it stays"), async () => {
    const { root, passes, connect } = createPassProject()
    succeed(await passes.begin("p1", CAN_MODIFY))
    expect(await passes.withhold("p1")).toEqual(NOTHING)
    expect([existsSync(stateOf(root, "copy")), existsSync(stateOf(root, "files"))]).toEqual([false, false])
    expect(await connect().pending()).toEqual([])
  })

  test(promised("pass-over.B2", "also when it was made to its end by then"), async () => {
    const { root, passes } = createPassProject()
    const { made } = succeed(await passes.begin("p1", CAN_MODIFY))
    await made
    expect(await passes.withhold("p1")).toEqual(NOTHING)
    expect(existsSync(stateOf(root, "copy"))).toBe(false)
  })

  test(promised("pass-over.B1", "what was changed before it was made is in no result"), async () => {
    const { root, passes } = createPassProject()
    const begun = succeed(await passes.begin("p1", CAN_MODIFY))
    const entered = passes.enter("p1")
    writeFiles(root, { "a.txt": "the user's\n" })
    await entered
    writeFiles(begun.copy ?? "", { "src/b.txt": "the child's\n" })
    const { modifications } = succeed(await passes.withhold("p1"))
    expect(modifications.map(({ path }) => path)).toEqual(["src/b.txt"])
  })

  test(
    promised("pass-over.B3", "where it cannot be made, whoever enters is told, and nothing of it stays"),
    async () => {
      const { root, passes, connect } = createPassProject()
      mkdirSync(stateOf(root), { recursive: true })
      // A file where the copy is to be.
      writeFiles(stateOf(root), { copy: "in the way" })
      const begun = succeed(await passes.begin("p1", CAN_MODIFY))
      const refusal = {
        kind: "refused",
        code: "failed",
        reason: expect.stringContaining("copying the files of pass p1"),
      }
      expect(await passes.enter("p1")).toMatchObject(refusal)
      expect(await begun.made).toMatchObject(refusal)
      expect(await connect().pending()).toEqual([])
      expect(succeed(await connect().begin("p1", CAN_MODIFY)).kind).toBe("begun")
    },
  )
})
