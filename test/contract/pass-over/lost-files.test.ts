import { existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { restoreFiles } from "../../../.opencode/baton/pass-over/audit/query.ts"
import { createPassStore } from "../../../.opencode/baton/pass-over/store/store.ts"
import { promised } from "../../requirements.ts"
import { fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { openFeaturePasses } from "../../support/opencode/feature-passes.ts"
import { connectPassWorktree, readIn } from "../../support/opencode/pass-project.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

/** A pass whose files could not be stored at the child's return, since git was missing from PATH. */
const returnWithoutGit = async () => {
  const { PATH } = process.env
  const passes = openFeaturePasses({
    agents: {
      coder: async ({ write, giveBack }) => {
        await write("made.txt", "made\n")
        process.env.PATH = "/nowhere"
        await giveBack({ status: "completed", summary: "Done." })
      },
    },
  })
  try {
    const answer = await passes.pass()
    const [id = ""] = passes.ids()
    return { ...passes, answer, id, context: fakeToolContext(passes.opencode.rootID) }
  } finally {
    process.env.PATH = PATH
  }
}

describe("files that could not be stored when the child returned", () => {
  test(promised(["pass-over.B1", "pass-over.B3"], "are stored and applied by pass_over_apply"), async () => {
    const { answer, feature, id, context, root, recordOf } = await returnWithoutGit()
    expect(answer).toContain("could not be stored")
    expect(answer).toContain("pass_over_apply")
    expect(await feature.apply({ pass_over_id: id }, context)).toContain("made.txt: applied")
    expect(readIn(root, "made.txt")).toBe("made\n")
    expect(recordOf(id).state).toMatchObject({ state: "applied", applied: ["made.txt"] })
    await feature.stop()
  })

  test(promised("pass-over.B3", "are stored by baton passes restore while OpenCode lives"), async () => {
    const { feature, id, context, root } = await returnWithoutGit()
    expect(await restoreFiles(root, id, createRecordedLog())).toMatchObject({ kind: "restored", held: 1 })
    expect(await feature.reject({ pass_over_id: id }, context)).toContain("rejected (made.txt)")
    expect(existsSync(join(root, "made.txt"))).toBe(false)
    await feature.stop()
  })

  test(promised(["pass-over.B3", "pass-over.E4"], "are not removed with old passes"), async () => {
    const { feature, id, root, folder } = await returnWithoutGit()
    const store = createPassStore({ state: createStateFolder(root), log: createRecordedLog() })
    await store.removeFinished(new Date(Date.now() + 86_400_000))
    expect(readIn(join(folder, id, "copy"), "made.txt")).toBe("made\n")
    await feature.stop()
  })
})

test(promised("pass-over.A3", "a file that was applied and not noted as such is not called rejected"), async () => {
  const passes = openFeaturePasses({
    agents: {
      coder: async ({ write, giveBack }) => {
        await write("one.txt", "1\n")
        await write("two.txt", "2\n")
        await giveBack({ status: "completed", summary: "Done." })
      },
    },
  })
  const { feature, root, recordOf } = passes
  await passes.pass()
  const [id = ""] = passes.ids()
  // Simulates a crash between the files and the record.
  await connectPassWorktree(root).apply(id, { paths: ["one.txt"] })
  const answer = await feature.reject({ pass_over_id: id }, fakeToolContext(passes.opencode.rootID))
  expect(answer).toContain("one.txt had been applied before")
  expect(recordOf(id).state).toMatchObject({ state: "applied", applied: ["one.txt"], rejected: ["two.txt"] })
  await feature.stop()
})

describe("a copy that somebody deleted", () => {
  test(
    promised(["pass-over.B1", "pass-over.B3"], "is said to be gone in the result, and nothing waits for it"),
    async () => {
      const passes = openFeaturePasses({
        agents: {
          coder: async ({ write, giveBack }) => {
            await write("made.txt", "made\n")
            const [id = ""] = passes.ids()
            rmSync(join(passes.folder, id, "copy"), { recursive: true })
            await giveBack({ status: "completed", summary: "Made it." })
          },
        },
      })
      const answer = await passes.pass()
      expect(answer).toContain("the copy in which the subagent worked was deleted")
      expect(answer).not.toContain("could not be stored")
      expect(await connectPassWorktree(passes.root).pending()).toEqual([])
      await passes.feature.stop()
    },
  )

  test(
    promised(["pass-over.A3", "pass-over.B3"], "after files could not be stored can still be given up"),
    async () => {
      const { feature, id, context, folder, root } = await returnWithoutGit()
      rmSync(join(folder, id, "copy"), { recursive: true })
      expect(await restoreFiles(root, id, createRecordedLog())).toMatchObject({ kind: "restored", held: 0 })
      expect(await feature.reject({ pass_over_id: id }, context)).not.toContain("failed")
      expect(await connectPassWorktree(root).pending()).toEqual([])
      await feature.stop()
    },
  )
})
