import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  closeTaskProjects,
  type ModelRequest,
  type SharedTask,
  snapshotTree,
} from "../../support/index.ts"
import { lastToolAnswer, passOver, returns, START } from "../../support/model/pass-over-script.ts"
import { goThrough, openPassOverProject, openSharedPasses, sources } from "../../support/opencode/pass-over-project.ts"

closeTaskProjects()

const DONE = { text: "Done." }
const passID = (text: string): string => /\bpass_\d{17}_[0-9a-z]+/.exec(text)?.[0] ?? ""
/** A root agent's call about the pass in its last answer. */
const decide =
  (tool: string, input: Record<string, unknown> = {}) =>
  (request: ModelRequest) => ({
    tool,
    input: { pass_over_id: passID(request.conversation), ...input },
  })

const write = (filePath: string, content: string) => ({ tool: "write", input: { filePath, content } })
const read = (filePath: string) => ({ tool: "read", input: { filePath } })

/** Changes one file. */
const CODE = [read("src/a.ts"), write("src/a.ts", "export const a = 2\n")]

/** The project's own files, without OpenCode's and the bundle's. */
const ownFiles = ({ project }: SharedTask) => {
  const all = Object.entries(snapshotTree(project.directory))
  return Object.fromEntries(all.filter(([path]) => !/^(?:\.opencode|\.git)(?:\/|$)/.test(path)))
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["pass-over.A1", "pass-over.A2", "pass-over.A5", "pass-over.F2", "pass-over.G1"],
      "a review comes back with decision and findings",
    ),
    async () => {
      const finding = { severity: "error", message: "a is never used", path: "src/a.ts", line: 1, fix: "remove it" }
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "audit", objective: "REVIEW-IT please", files: ["src/a.ts"] }), DONE],
        agents: { "REVIEW-IT": [returns({ decision: "changes_requested", findings: [finding] }), DONE] },
      })
      const answer = await goThrough(task)
      expect(answer).toContain("audit → completed, decision: changes_requested")
      expect(answer).toContain("error src/a.ts:1: a is never used → remove it")
      expect(answer).toMatch(/Child session: ses_[A-Za-z0-9]{20,}/)
      const child = task.model
        .received("turn")
        .find(({ conversation }) => /^\[user\] The agent build/.test(conversation))
      expect(child?.conversation).toContain("export const a = 1")
      expect(child?.tools).toContain("pass_over_return")
      expect(child?.tools).not.toContain("write")
      expect(child?.tools).not.toContain("bash")
      const root = task.model.received("turn")[0]
      expect(root?.tools).toContain("pass_over")
      expect(root?.tools).not.toContain("pass_over_return")
    },
  )

  test(
    promised(
      ["pass-over.B1", "pass-over.B2", "pass-over.A3", "pass-over.G1"],
      "changes by tool and shell are held back, and rejected they leave the worktree as it was",
    ),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "coder", objective: "CODE-IT" }), decide("pass_over_reject"), DONE],
        agents: {
          "CODE-IT": [...CODE, bash("echo made > src/b.ts && rm README.md"), returns(), DONE],
        },
      })
      task.project.write("src/mine.ts", "not committed\n")
      const before = ownFiles(task)
      await goThrough(task)
      expect(ownFiles(task)).toEqual(before)
      const told = task.model.received("turn").map(({ conversation }) => conversation)
      const answers = told.findLast((text) => text.includes("rejected (")) ?? ""
      expect(answers).toContain("modified src/a.ts")
      expect(answers).toContain("added src/b.ts (by a shell command)")
      expect(answers).toContain("deleted README.md (by a shell command)")
      expect(answers).toContain("3 of them are held back")
    },
  )

  test(promised(["pass-over.B2", "pass-over.A3", "pass-over.G1"], "applied changes are in the worktree"), async () => {
    const task = await openPassOverProject(binary, {
      root: [
        passOver({ subagent: "coder", objective: "CODE-IT" }),
        decide("pass_over_apply"),
        decide("pass_over_status"),
        DONE,
      ],
      agents: {
        "CODE-IT": [...CODE, bash("echo made > src/b.ts"), returns(), DONE],
      },
    })
    const { exitCode, stderr } = await task.run(START)
    expect(exitCode, stderr).toBe(0)
    const answer = lastToolAnswer(task.model.requests)
    expect(task.project.read("src/a.ts")).toBe("export const a = 2\n")
    expect(task.project.read("src/b.ts")).toBe("made\n")
    expect(answer).toContain("They are in the worktree (applied)")
  })

  test(
    promised(["pass-over.B2", "pass-over.G1"], "a file that changed meanwhile is refused, and nothing is applied"),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [
          passOver({ subagent: "coder", objective: "CODE-IT" }),
          bash("echo mine > src/a.ts"),
          decide("pass_over_apply"),
          DONE,
        ],
        agents: {
          "CODE-IT": [...CODE, write("src/c.ts", "c\n"), returns(), DONE],
        },
      })
      const answer = await goThrough(task)
      expect(answer).toContain("E022 APPLY_CONFLICT")
      expect(answer).toContain("src/a.ts: conflict")
      expect(task.project.read("src/a.ts")).toBe("mine\n")
      expect(sources(task.project)).toEqual(["a.ts"])
    },
  )

  test(promised(["pass-over.B2", "pass-over.C1"], "with auto_apply the changes stay"), async () => {
    const task = await openSharedPasses(binary, {
      root: [passOver({ subagent: "coder", objective: "CODE-IT" }), DONE],
      agents: { "CODE-IT": [...CODE, returns(), DONE] },
      policy: { pairs: { "build->coder": { auto_apply: true } } },
    })
    expect(await goThrough(task)).toContain("They are in the worktree (applied)")
    expect(task.project.read("src/a.ts")).toBe("export const a = 2\n")
  })

  test(
    promised(
      ["pass-over.C3", "pass-over.G1"],
      "a reader cannot write: not by tool, not by shell, not through an agent of its own",
    ),
    async () => {
      const task = await openSharedPasses(binary, {
        root: [passOver({ subagent: "coder", objective: "READ-IT" }), DONE],
        agents: {
          "READ-IT": [
            write("src/x.ts", "x\n"),
            bash("echo x > src/x.ts"),
            { tool: "task", input: { subagent_type: "general", description: "d", prompt: "Write src/x.ts" } },
            passOver({ subagent: "second", objective: "WRITE-IT" }),
            returns(),
            DONE,
          ],
          "WRITE-IT": [write("src/x.ts", "x\n"), bash("echo x > src/x.ts"), returns(), DONE],
        },
        policy: { subagents: { coder: { can_modify_files: false } } },
      })
      const before = ownFiles(task)
      expect(await goThrough(task)).toContain("coder → completed")
      expect(ownFiles(task)).toEqual(before)
      const child = task.model
        .received("turn")
        .find(({ conversation }) => conversation.startsWith("[user] The agent coder"))
      expect(child?.tools).not.toContain("bash")
    },
  )
})
