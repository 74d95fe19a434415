import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createPersonsPasses } from "../../../.opencode/baton/pass-over/audit/person.ts"
import { createPassStore } from "../../../.opencode/baton/pass-over/store/store.ts"
import { promised } from "../../requirements.ts"
import { type AgentTurn, fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { DONE, openFeaturePasses, writing } from "../../support/opencode/feature-passes.ts"
import { connectSandboxes, gitIn, readIn, writeFiles } from "../../support/opencode/pass-project.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

/** A pass whose files could not be stored at the child's return, since git was missing from PATH. */
const returnWithoutGit = async () => {
  onTestFinished(() => void vi.unstubAllEnvs())
  const passes = openFeaturePasses({
    coder: async ({ write, giveBack }) => {
      await write("made.txt", "made\n")
      vi.stubEnv("PATH", "/nowhere")
      await giveBack(DONE)
    },
  })
  const answer = await passes.pass()
  vi.unstubAllEnvs()
  const [id = ""] = passes.ids()
  return { ...passes, answer, id, context: fakeToolContext(passes.opencode.rootID) }
}

describe("files that could not be stored when the child returned", () => {
  test(promised(["pass-over.B1", "pass-over.B3"], "are stored and applied by pass_over_apply"), async () => {
    const { answer, feature, id, context, root, recordOf } = await returnWithoutGit()
    expect(answer).toContain("could not be stored")
    expect(answer).toContain("pass_over_apply")
    expect(await feature.apply({ pass_over_id: id }, context)).toContain("made.txt: applied")
    expect(readIn(root, "made.txt")).toBe("made\n")
    expect(recordOf(id).state).toMatchObject({ state: "applied", applied: ["made.txt"] })
  })

  test(promised("pass-over.B3", "are stored by baton passes restore while OpenCode lives"), async () => {
    const { feature, id, context, root } = await returnWithoutGit()
    expect(await createPersonsPasses(root, createRecordedLog()).restore(id)).toMatchObject({
      kind: "restored",
      held: 1,
    })
    expect(await feature.reject({ pass_over_id: id }, context)).toContain("rejected (made.txt)")
    expect(existsSync(join(root, "made.txt"))).toBe(false)
  })

  test(promised(["pass-over.B3", "pass-over.E4"], "are not removed with old passes"), async () => {
    const { id, root, folder } = await returnWithoutGit()
    const store = createPassStore({ state: createStateFolder(root), log: createRecordedLog() })
    await store.removeFinished(new Date(Date.now() + 86_400_000))
    expect(readIn(join(folder, id, "copy"), "made.txt")).toBe("made\n")
  })
})

describe("an apply that a crash cut off", () => {
  /** Applies one.txt of a pass, as a process does that dies before it drops the journal. */
  const cutOff = async (isNoted: boolean) => {
    const passes = openFeaturePasses({ coder: writing({ "one.txt": "1\n", "two.txt": "2\n" }) })
    const { feature, root, recordOf, folder, opencode } = passes
    await passes.pass()
    const [id = ""] = passes.ids()
    const journal = join(folder, id, "files", "apply.json")
    let text = ""
    const { sandboxes } = connectSandboxes(root, root, {
      isNoted: () => {
        text = readFileSync(journal, "utf8")
        return isNoted
      },
    })
    await sandboxes.apply(id, ["one.txt"], { merge: false, allOrNothing: true, by: "originator" })
    writeFileSync(journal, text)
    return {
      feature,
      root,
      recordOf: () => recordOf(id),
      journal,
      args: { pass_over_id: id },
      context: fakeToolContext(opencode.rootID),
    }
  }

  test(
    promised("pass-over.A3", "before it was noted is taken back, and a file of it that is rejected is gone"),
    async () => {
      const { feature, root, recordOf, args, context } = await cutOff(false)
      expect(readIn(root, "one.txt")).toBe("1\n")
      expect(await feature.reject(args, context)).toContain("rejected (one.txt, two.txt)")
      expect(existsSync(join(root, "one.txt"))).toBe(false)
      expect(recordOf().state).toMatchObject({ state: "rejected", rejected: ["one.txt", "two.txt"] })
    },
  )

  test(promised("pass-over.A3", "after it was noted stays applied"), async () => {
    const { feature, root, recordOf, journal, args, context } = await cutOff(true)
    expect(await feature.reject(args, context)).toContain("rejected (two.txt)")
    expect([readIn(root, "one.txt"), existsSync(journal)]).toEqual(["1\n", false])
    expect(recordOf().state).toMatchObject({ state: "applied", applied: ["one.txt"], rejected: ["two.txt"] })
  })
})

describe("a sandbox that somebody deleted", () => {
  test(
    promised(["pass-over.B1", "pass-over.B3"], "is said to be gone in the result, and nothing waits for it"),
    async () => {
      const passes = openFeaturePasses({
        coder: async ({ write, giveBack }) => {
          await write("made.txt", "made\n")
          const [id = ""] = passes.ids()
          rmSync(join(passes.folder, id, "copy"), { recursive: true })
          await giveBack(DONE)
        },
      })
      const answer = await passes.pass()
      expect(answer).toContain("the sandbox in which the subagent worked was deleted")
      expect(answer).not.toContain("could not be stored")
      expect(await connectSandboxes(passes.root).pending()).toEqual([])
    },
  )

  test(
    promised(["pass-over.A3", "pass-over.B3"], "after files could not be stored can still be given up"),
    async () => {
      const { feature, id, context, folder, root } = await returnWithoutGit()
      rmSync(join(folder, id, "copy"), { recursive: true })
      expect(await createPersonsPasses(root, createRecordedLog()).restore(id)).toMatchObject({
        kind: "restored",
        held: 0,
      })
      expect(await feature.reject({ pass_over_id: id }, context)).not.toContain("failed")
      expect(await connectSandboxes(root).pending()).toEqual([])
    },
  )
})

test(
  promised(
    ["pass-over.B3", "pass-over.E1"],
    "a subagent whose sandbox cannot be made is ended, and its originator is told why and what to do",
  ),
  async () => {
    const refusals: string[] = []
    const passes = openFeaturePasses({
      coder: async ({ write, signal }) => {
        await write("b.txt", "b\n").catch((error: unknown) => refusals.push(String(error)))
        signal.throwIfAborted()
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))
      },
    })
    // Git works with this folder, but copying it as a file fails.
    mkdirSync(join(passes.root, ".git", "shallow"))
    const answer = await passes.pass()
    expect(answer).toContain("E011")
    expect(answer).toContain("The subagent's files could not be set up")
    expect(answer).toMatch(/Child session: ses_/)
    expect(refusals).toEqual([expect.stringContaining("There is nothing to work in: copying the files of pass")])
    const [id = ""] = passes.ids()
    expect(passes.recordOf(id).state.state).toBe("returned")
    expect(existsSync(join(passes.folder, id, "copy"))).toBe(false)
    expect(existsSync(join(passes.root, "b.txt"))).toBe(false)
    expect(passes.opencode.turns()).toBe(1)
  },
)

describe("what a pass cannot carry", () => {
  /** The child's sandbox of the project, found by the path to which its tool calls are moved. */
  const copyOf = async (use: AgentTurn["use"], root: string): Promise<string> =>
    dirname(String((await use("read", { filePath: join(root, "a.txt") })).filePath))

  test(
    promised(["pass-over.B1", "pass-over.B3"], "is the history of a repository that the child made, and not its files"),
    async () => {
      const passes = openFeaturePasses({
        coder: async ({ use, giveBack }) => {
          const app = join(await copyOf(use, passes.root), "app")
          writeFiles(app, { "index.ts": "1\n", ".gitignore": "built\n", "built/x": "x", "lib/deep.ts": "2\n" })
          gitIn(app, "init", "-q")
          gitIn(app, "add", "index.ts")
          gitIn(app, "commit", "-q", "-m", "made")
          gitIn(join(app, "lib"), "init", "-q")
          await giveBack(DONE)
        },
      })
      const answer = await passes.pass()
      for (const path of ["app/index.ts", "app/.gitignore", "app/lib/deep.ts"])
        expect(answer).toContain(`added ${path}`)
      expect(answer).not.toContain("built")
      expect(answer).toContain("Not carried (2):\n- app/.git: ")
      const [id = ""] = passes.ids()
      await passes.feature.apply({ pass_over_id: id }, fakeToolContext(passes.opencode.rootID))
      expect(readIn(passes.root, "app/lib/deep.ts")).toBe("2\n")
      expect(existsSync(join(passes.folder, id, "copy"))).toBe(false)
    },
  )

  test(
    promised(["pass-over.B1", "pass-over.B3"], "is named, and stays in the sandbox when it is nowhere else"),
    async () => {
      const passes = openFeaturePasses({
        coder: async ({ use, write, giveBack }) => {
          const sandbox = await copyOf(use, passes.root)
          writeFileSync(
            Buffer.concat([Buffer.from(`${sandbox}/`), Buffer.from([0xff, 0xfe]), Buffer.from(".txt")]),
            "x",
          )
          await write("named.txt", "n\n")
          await giveBack(DONE)
        },
      })
      const answer = await passes.pass()
      const [id = ""] = passes.ids()
      expect(answer).toContain("its name is not UTF-8")
      expect(answer).toContain(`stays in .opencode/state/pass-over/${id}/copy`)
      await passes.feature.apply({ pass_over_id: id }, fakeToolContext(passes.opencode.rootID))
      expect(readdirSync(join(passes.folder, id, "copy")).join()).toContain("\uFFFD")
    },
  )

  test(promised("pass-over.B2", "is told to the child when the project has it and the sandbox does not"), async () => {
    let order = ""
    const passes = openFeaturePasses({
      coder: async ({ context, giveBack }) => {
        order = context
        await giveBack(DONE)
      },
    })
    mkdirSync(join(passes.root, "nested"))
    gitIn(join(passes.root, "nested"), "init", "-q")
    writeFiles(join(passes.root, "nested"), { f: "x" })
    expect(await passes.pass()).not.toContain("nested")
    expect(order).toContain("nested/: it is a git repository of its own")
  })
})
