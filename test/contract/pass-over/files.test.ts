import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createPersonsPasses } from "../../../.opencode/baton/pass-over/audit/person.ts"
import { createPassStore } from "../../../.opencode/baton/pass-over/store/store.ts"
import { promised } from "../../requirements.ts"
import type { AgentTurn } from "../../support/opencode/fake-opencode.ts"
import { DONE, openFeaturePasses, speakOn, writing } from "../../support/opencode/feature-passes.ts"
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
  const restore = () => createPersonsPasses(passes.root, createRecordedLog()).restore(passes.id())
  return { ...passes, answer, restore }
}

describe("files that could not be stored when the child returned", () => {
  test(
    promised(
      ["pass-over.B1", "pass-over.B3"],
      "files that could not be stored when the child returned are stored and applied by pass_over_apply",
    ),
    async () => {
      const { answer, apply, id, root, recordOf } = await returnWithoutGit()
      expect(answer).toContain("could not be stored")
      expect(answer).toContain("pass_over_apply")
      expect(await apply()).toContain("made.txt: applied")
      expect(readIn(root, "made.txt")).toBe("made\n")
      expect(recordOf(id()).state).toMatchObject({ state: "applied", applied: ["made.txt"] })
    },
  )

  test(promised("pass-over.B3", "unstored files are stored by baton passes restore while OpenCode lives"), async () => {
    const { reject, restore, root } = await returnWithoutGit()
    expect(await restore()).toMatchObject({ kind: "restored", held: 1 })
    expect(await reject()).toContain("rejected (made.txt)")
    expect(existsSync(join(root, "made.txt"))).toBe(false)
  })

  test(promised(["pass-over.B3", "pass-over.E4"], "unstored files are not removed with old passes"), async () => {
    const { copy, root } = await returnWithoutGit()
    const store = createPassStore({ state: createStateFolder(root), log: createRecordedLog() })
    await store.removeFinished(new Date(Date.now() + 86_400_000))
    expect(readIn(copy(), "made.txt")).toBe("made\n")
  })
})

describe("an apply that a crash cut off", () => {
  /** Applies one.txt of a pass, as a process does that dies before it drops the journal. */
  const cutOff = async (isNoted: boolean) => {
    const passes = openFeaturePasses({ coder: writing({ "one.txt": "1\n", "two.txt": "2\n" }) })
    await passes.pass()
    const journal = join(passes.folder, passes.id(), "files", "apply.json")
    let text = ""
    const { sandboxes } = connectSandboxes(passes.root, passes.root, {
      isNoted: () => {
        text = readFileSync(journal, "utf8")
        return isNoted
      },
    })
    await sandboxes.apply(passes.id(), ["one.txt"], { allOrNothing: true, by: "originator" })
    writeFileSync(journal, text)
    return { ...passes, stateNow: () => passes.recordOf(passes.id()).state, journal }
  }

  test(
    promised("pass-over.A3", "an apply cut off before it was noted is taken back, and its rejected file is gone"),
    async () => {
      const { reject, root, stateNow } = await cutOff(false)
      expect(readIn(root, "one.txt")).toBe("1\n")
      expect(await reject()).toContain("rejected (one.txt, two.txt)")
      expect(existsSync(join(root, "one.txt"))).toBe(false)
      expect(stateNow()).toMatchObject({ state: "rejected", rejected: ["one.txt", "two.txt"] })
    },
  )

  test(promised("pass-over.A3", "an apply cut off after it was noted stays applied"), async () => {
    const { reject, root, stateNow, journal } = await cutOff(true)
    expect(await reject()).toContain("rejected (two.txt)")
    expect([readIn(root, "one.txt"), existsSync(journal)]).toEqual(["1\n", false])
    expect(stateNow()).toMatchObject({ state: "applied", applied: ["one.txt"], rejected: ["two.txt"] })
  })
})

describe("a deleted sandbox", () => {
  test(
    promised(["pass-over.B1", "pass-over.B3"], "a deleted sandbox is said to be gone, and nothing waits for it"),
    async () => {
      const passes = openFeaturePasses({
        coder: async ({ write, giveBack }) => {
          await write("made.txt", "made\n")
          rmSync(passes.copy(), { recursive: true })
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
    promised(["pass-over.A3", "pass-over.B3"], "a sandbox deleted before its files were stored can be given up"),
    async () => {
      const { reject, restore, copy, root } = await returnWithoutGit()
      rmSync(copy(), { recursive: true })
      expect(await restore()).toMatchObject({ kind: "restored", held: 0 })
      expect(await reject()).not.toContain("failed")
      expect(await connectSandboxes(root).pending()).toEqual([])
    },
  )
})

test(promised(["pass-over.B3", "pass-over.E1"], "a subagent whose sandbox cannot be made ends, with why"), async () => {
  const refusals: string[] = []
  const passes = openFeaturePasses({
    coder: async (turn) => {
      await turn.write("b.txt", "b\n").catch((error: unknown) => refusals.push(String(error)))
      turn.signal.throwIfAborted()
      await speakOn(turn)
    },
  })
  // Git works with this folder, but copying it as a file fails.
  mkdirSync(join(passes.root, ".git", "shallow"))
  const answer = await passes.pass()
  expect(answer).toContain("E011")
  expect(answer).toContain("The subagent's files could not be set up")
  expect(answer).toMatch(/Child session: ses_/)
  expect(refusals).toEqual([expect.stringContaining("There is nothing to work in: copying the files of pass")])
  expect(passes.recordOf(passes.id()).state.state).toBe("returned")
  expect(existsSync(passes.copy())).toBe(false)
  expect(existsSync(join(passes.root, "b.txt"))).toBe(false)
  expect(passes.opencode.turns()).toBe(1)
})

describe("what a pass cannot carry", () => {
  /** The child's sandbox of the project, found by the path to which its tool calls are moved. */
  const copyOf = async (use: AgentTurn["use"], root: string): Promise<string> =>
    dirname(String((await use("read", { filePath: join(root, "a.txt") })).filePath))

  test(
    promised(
      ["pass-over.B1", "pass-over.B3"],
      "what a pass cannot carry is a child repository's history, and not its files",
    ),
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
      await passes.apply()
      expect(readIn(passes.root, "app/lib/deep.ts")).toBe("2\n")
      expect(existsSync(passes.copy())).toBe(false)
    },
  )

  test(
    promised(["pass-over.B1", "pass-over.B3"], "what a pass cannot carry is named, and stays in the sandbox alone"),
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
      expect(answer).toContain("its name is not UTF-8")
      expect(answer).toContain(`stays in .opencode/state/pass-over/${passes.id()}/copy`)
      await passes.apply()
      expect(readdirSync(passes.copy()).join()).toContain("\uFFFD")
    },
  )

  test(
    promised(
      "pass-over.B2",
      "what a pass cannot carry is told to the child when the project has it and the sandbox does not",
    ),
    async () => {
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
    },
  )
})
