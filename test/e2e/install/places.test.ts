import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  COMPACTING_PROMPT_TOKENS,
  closeTaskProjects,
  type OpenCodeBinary,
  openSharedTask,
  openTaskProject,
  REPOSITORY,
  runOpenCode,
  type SharedTask,
  TASK,
  type TaskProject,
} from "../../support/index.ts"
import { linkDependencies } from "../../support/opencode/isolated-opencode.ts"
import type { TestProject } from "../../support/opencode/test-project.ts"
import { compact, compactionsOf, compactsOnDemand, lastTurn, recordsOf, turnsOf } from "../sessions.ts"

closeTaskProjects()

/** Start folder of OpenCode, and the folder with the bundle. */
type Place = { directory: string; root: string }

const folderBelow = ({ directory }: Pick<TestProject, "directory">): Place => {
  const below = join(directory, "packages", "parser")
  mkdirSync(below, { recursive: true })
  return { directory: below, root: directory }
}

/** Adds a worktree to the project's repository, with the committed bundle. */
const linkedWorktree = ({ directory }: TestProject, { version }: OpenCodeBinary): Place => {
  const tree = join(dirname(directory), "linked")
  execFileSync("git", ["-C", directory, "worktree", "add", "-q", "-b", "linked", tree], { stdio: "pipe" })
  linkDependencies(join(tree, ".opencode"), version, join(REPOSITORY, "node_modules"))
  return { directory: tree, root: tree }
}

const PLACES: [what: string, folder: string, find: (project: TestProject, binary: OpenCodeBinary) => Place][] = [
  ["a folder below the project, in a path with spaces and other letters", "Größe und 文 'x'/der Parser", folderBelow],
  ["a linked worktree of git", "project", linkedWorktree],
]

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test.each(PLACES)(
    promised(["start.A1", "compaction.C2", "compaction.C7"], "in %s the task is known and a compaction is recorded"),
    async (_what, folder, find) => {
      let step = 0
      const task: TaskProject = await openTaskProject(
        binary,
        ({ kind }) => {
          if (kind === "compaction") return { text: "A summary." }
          if (step++ > 0) return { text: "Finished." }
          return bash(`prog log ${task.taskID} "By the agent"`, COMPACTING_PROMPT_TOKENS)
        },
        { folder },
      )
      const { directory, root } = find(task.project, binary)
      writeFileSync(join(root, "prompts", "handoff.md"), "<!-- baton:handoff -->\nThe wording of this place.\n")
      const environment = { ...task.project.environment, PWD: directory }
      const project = { ...task.project, directory, environment }
      const result = await runOpenCode(task.message, { binary, project })
      expect(result.exitCode, result.stderr).toBe(0)
      expect(turnsOf(task)[0]).toContain(TASK.specification)
      expect(compactionsOf(task)[0]).toContain("The wording of this place.")
      expect(lastTurn(task)).toContain("(compaction 1 of this session)")
      expect(await recordsOf(task)).toEqual(["By the agent", "Compaction 1: A summary."])
      expect(readdirSync(join(root, ".opencode", "state", "tasks"))).toHaveLength(1)
      if (directory !== root) expect(readdirSync(directory)).toEqual([])
    },
  )

  test(
    promised(["compaction.C2", "compaction.C7"], "a user's own way of compacting stays, and is recorded"),
    async () => {
      const config = {
        compaction: { auto: false, prune: true },
        agent: { compaction: { prompt: "You are the user's own summariser." } },
      }
      const task = await openSharedTask(binary, compactsOnDemand, { config })
      const id = await task.say(`${task.message}\nCOMPACT-NOW`)
      expect(lastTurn(task)).toContain(TASK.specification)
      expect(compactionsOf(task), "auto is off").toEqual([])
      await compact(task, id)
      const [request] = task.model.received("compaction")
      expect(request?.system).toContain("You are the user's own summariser.")
      expect(request?.conversation).toContain(`## Task ${task.taskID}`)
      expect(await task.records(1)).toEqual(["Compaction 1: Summary 1."])
      await task.say("What is next?", id)
      expect(lastTurn(task)).toContain("(compaction 1 of this session)")
    },
  )

  test(
    promised("ledger.D4", "the agent finds prog on its PATH, without Bun, and writes to the observer's ledger"),
    async () => {
      let step = 0
      const task: SharedTask = await openSharedTask(binary, () => {
        if (step++ > 0) return { text: "Finished." }
        return bash(`command -v bun || prog show ${task.taskID} && prog log ${task.taskID} 'by the agent'`)
      })
      await task.say("There is no task line here.")
      expect(lastTurn(task)).toContain(TASK.title)
      expect(await task.records(1)).toEqual(["by the agent"])
    },
  )
})
