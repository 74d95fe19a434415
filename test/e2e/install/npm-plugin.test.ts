import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { cachePackage, PACKAGE_ENTRY, removePackage } from "../../support/files/packed-package.ts"
import {
  BOTH_ENDS,
  bash,
  COMPACTING_PROMPT_TOKENS,
  newestWords,
  openTaskProject,
  type Script,
  TASK,
} from "../../support/index.ts"
import { PACKAGE_FILES } from "../../support/opencode/isolated-opencode.ts"
import { liveFiles } from "../../support/opencode/live-stream.ts"
import { compactionsOf, lastTurn, recordsOf, runWell, turnsOf } from "../sessions.ts"

removePackage()

const CORRECTION = "No, use tabs instead of spaces in the formatter."

/** Is compacted on demand, hands over when the command asks, and reports otherwise. */
const script =
  (taskID: () => string): Script =>
  (request) => {
    if (request.kind === "compaction") return { text: "A summary." }
    const words = newestWords(request)
    if (words.includes("[tool]")) return { text: "Done." }
    if (words.includes("COMPACT-NOW")) return bash(`prog log ${taskID()} "By the agent"`, COMPACTING_PROMPT_TOKENS)
    if (words.includes("Hand this work over"))
      return { tool: "handoff_session", input: { prompt: "Go on with the parser.", files: [] } }
    return { text: "I formatted it with spaces." }
  }

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("package.D1", "an entry in opencode.json gives all five features, and no file of Baton"), async () => {
    const task = await openTaskProject(
      binary,
      script(() => task.taskID),
      { bundle: "none", config: { plugin: [PACKAGE_ENTRY] } },
    )
    cachePackage(task.project)
    const { directory } = task.project

    await runWell(task, `${task.message}\nCOMPACT-NOW`)
    expect(turnsOf(task)[0], "the task, and the prompt of its role").toContain(TASK.specification)
    expect(compactionsOf(task)[0]).toContain(`## Task ${task.taskID}`)
    expect(lastTurn(task)).toContain("(compaction 1 of this session)")
    expect(await recordsOf(task)).toEqual(["By the agent", "Compaction 1: A summary."])
    const tools = task.model.received("turn")[0]?.tools
    expect(tools).toContain("pass_over")
    expect(liveFiles(directory)).toHaveLength(1)

    await runWell(task, CORRECTION)
    await runWell(task, "Make the formatter ready for CSS.")
    expect(lastTurn(task)).toContain(JSON.stringify(CORRECTION))

    await runWell(task, "go on", { args: ["--command", "handoff"] })
    expect(lastTurn(task)).toContain("handoff_session")
    expect(task.project.batonLog().filter((line) => /unusable|built-in/.test(line))).toEqual([])
    expect(existsSync(join(directory, "prompts"))).toBe(false)
    const openCodes: readonly string[] = PACKAGE_FILES
    const added = readdirSync(join(directory, ".opencode")).filter((name) => !openCodes.includes(name))
    expect(added).toEqual(["state"])
  })
})
