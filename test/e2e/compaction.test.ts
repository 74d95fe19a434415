import { afterEach, describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { BOTH_ENDS, type OpenCodeBinary } from "../support/opencode-binary.ts"
import { runOpenCode } from "../support/opencode-run.ts"
import { measureRetention, retentionScript, type Summariser } from "../support/retention.ts"
import { type Script, type ScriptedModel, startScriptedModel } from "../support/scripted-model.ts"
import { openTestLedger } from "../support/test-ledger.ts"
import { createTestProject, type ProjectOptions, type TestProject } from "../support/test-project.ts"

const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF.\nKeep LF as it is.",
  definitionOfDone: "bun test passes on Windows line ends",
}
const BRIEF = "Never touch the lexer; the release is frozen until Friday."

const opened: { project?: TestProject; model?: ScriptedModel }[] = []
afterEach(async () => {
  for (const { project, model } of opened.splice(0)) {
    await model?.close()
    project?.remove()
  }
})

const setUp = async (binary: OpenCodeBinary, script: Script, options: Partial<ProjectOptions> = {}) => {
  const model = await startScriptedModel(script)
  const project = createTestProject({ binary, modelURL: model.url, ...options })
  opened.push({ project, model })
  const ledger = openTestLedger(project, binary)
  const taskID = await ledger.addTask(TASK)
  const message = `# Worker\n\nTask: ${taskID}\n\n${BRIEF}\n`
  return { model, project, ledger, taskID, message }
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(["compaction.C1", "compaction.C6", "compaction.C7"], "five compactions leave task and ledger intact"),
    async () => {
      const { model, project, ledger, taskID, message } = await setUp(binary, retentionScript(5, "faithful"))
      const result = await runOpenCode(message, { binary, project })
      expect(result.exitCode, result.stderr).toBe(0)
      expect(measureRetention(model.requests, taskID)).toEqual({ compactions: 5, factsKept: 5, turnsKnowingTask: 5 })
      const task = await ledger.show(taskID)
      expect(task.logs.map((entry) => entry.message.replace(/:.*/, ""))).toEqual(
        [1, 2, 3, 4, 5].map((n) => `Compaction ${n}`),
      )
      expect(task.description.startsWith(TASK.specification)).toBe(true)
      expect(task.description.split("Handoff after compaction").length).toBe(2)
      expect(task.description).toContain("Handoff after compaction 5")
    },
  )

  const SUMMARISERS: Summariser[] = ["careless", "empty", "foreign"]
  test.each(SUMMARISERS)(
    promised("compaction.C6", "a %s summary still leaves an agent that knows its task"),
    async (summariser) => {
      const { model, project, taskID, message } = await setUp(binary, retentionScript(2, summariser))
      const result = await runOpenCode(message, { binary, project })
      expect(result.exitCode, result.stderr).toBe(0)
      const afterCompaction = model.received("turn").slice(1)
      expect(afterCompaction).toHaveLength(2)
      for (const { conversation } of afterCompaction) {
        for (const known of [taskID, "Role: worker", TASK.title, TASK.definitionOfDone, BRIEF, `prog show ${taskID}`]) {
          expect(conversation).toContain(known)
        }
      }
    },
  )
})
