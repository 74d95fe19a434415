import { renameSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  bash,
  COMPACTING_PROMPT_TOKENS,
  COMPACTING_STEP,
  closeTaskProjects,
  type ModelReply,
  NEWEST_OR_ALL,
  newestSessionID,
  newestWords,
  type OpenCodeBinary,
  occurrences,
  openSharedTask,
  openTaskProject,
  type SharedTask,
  TASK,
} from "../../support/index.ts"

closeTaskProjects()

const HOOK_PROBE = `import { appendFileSync } from "node:fs"
export const Probe = async ({ directory }) => ({
  "experimental.session.compacting": async (_input, output) =>
    appendFileSync(directory + "/probe.jsonl", JSON.stringify(output) + "\\n"),
})
`

const CONTRACT_COMMENT = "<!-- baton:handoff -->"

/** A task whose session is compacted once. */
const openCompactedOnce = (binary: OpenCodeBinary): Promise<SharedTask> => {
  let step = 0
  return openSharedTask(binary, ({ kind }) => {
    if (kind === "compaction") return { text: "A summary." }
    return step++ < 1 ? COMPACTING_STEP : { text: "Finished." }
  })
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("compaction.C2", "an edit of prompts/handoff.md counts at the next compaction"), async () => {
    let step = 0
    const task: SharedTask = await openSharedTask(binary, ({ kind, index }) => {
      if (kind === "compaction") {
        task.project.write("prompts/handoff.md", `${CONTRACT_COMMENT}\nEdited after compaction ${index}.\n`)
        return { text: "A summary." }
      }
      return step++ < 2 ? COMPACTING_STEP : { text: "Finished." }
    })
    task.project.write("prompts/handoff.md", `${CONTRACT_COMMENT}\nThe first wording.\n`)
    await task.say(task.message)
    const [first, second] = task.model.received("compaction")
    expect(first?.conversation).toContain("The first wording.")
    expect(second?.conversation).toContain("Edited after compaction 0.")
    expect(second?.conversation).not.toContain("The first wording.")
    expect(second?.conversation).not.toContain("baton:handoff -->")
  })

  test(
    promised("start.A4", "a project's own prompts/handoff.md is no prompt of Baton's, and one line says so"),
    async () => {
      const task = await openCompactedOnce(binary)
      const mail = "# The handoff to sales\n\nDear {{customer}},\nyour new contact is {{name}}.\n"
      task.project.write("prompts/handoff.md", mail)
      await task.say(task.message)
      await task.logged("compaction recorded")
      const received = task.model.received("compaction")
      expect(received).toHaveLength(1)
      expect(received[0]?.conversation).toContain("# Write the handoff")
      expect(received[0]?.conversation).not.toContain("{{customer}}")
      expect(task.project.read("prompts/handoff.md")).toBe(mail)
      const lines = task.project.batonLog().filter((line) => line.includes("prompts/handoff.md"))
      expect(lines).toHaveLength(1)
      expect(lines[0]).toContain("prompts/handoff.md is the project's own (no contract comment): built-in text used")
      expect(lines[0]).toContain("INFO")
    },
  )

  test(
    promised("start.A4", "beside a project's own file the prompt of .opencode/prompts is used, silently"),
    async () => {
      const task = await openCompactedOnce(binary)
      task.project.write("prompts/handoff.md", "Dear {{customer}},\n")
      task.project.write(".opencode/prompts/handoff.md", `${CONTRACT_COMMENT}\nThe wording beside it.\n`)
      await task.say(task.message)
      await task.logged("compaction recorded")
      const received = task.model.received("compaction")
      expect(received[0]?.conversation).toContain("The wording beside it.")
      expect(received[0]?.conversation).not.toContain("{{customer}}")
      expect(task.project.batonLog().filter((line) => line.includes("handoff.md"))).toEqual([])
    },
  )

  test(
    promised(
      ["compaction.C3", "compaction.C4", "compaction.C5"],
      "the prompt carries block, prior summary and facts, each once",
    ),
    async () => {
      const todos = [{ id: "1", content: "Write the CRLF test", status: "pending", priority: "high" }]
      const steps: ((directory: string) => ModelReply)[] = [
        (directory) => ({
          tool: "write",
          input: { filePath: `${directory}/src/parser.ts`, content: "export const x = 1\n" },
        }),
        (directory) => ({ tool: "read", input: { filePath: `${directory}/README.md` } }),
        () => ({ tool: "todowrite", input: { todos } }),
        // OpenCode may take the step's first snapshot while the tool already runs; this command runs longer than the snapshot.
        () => bash("sleep 2 && echo made > by-shell.txt"),
        () => bash("exit 7", COMPACTING_PROMPT_TOKENS),
        () => COMPACTING_STEP,
      ]
      let step = 0
      const task: SharedTask = await openSharedTask(binary, ({ kind, index }) => {
        if (kind === "compaction") return { text: `PRIOR-SUMMARY-${index} is kept in full.` }
        return steps[step++]?.(task.project.directory) ?? { text: "Finished." }
      })
      task.project.write(".opencode/plugins/z-probe.ts", HOOK_PROBE)
      await task.say(task.message)
      const [first, second] = task.model.received("compaction").map(({ conversation }) => conversation)
      for (const part of [
        `Task ${task.taskID}`,
        TASK.title,
        TASK.definitionOfDone,
        TASK.specification,
        "### How to work",
      ]) {
        expect(occurrences(first ?? "", part), part).toBe(1)
      }
      for (const fact of [
        /Files changed \(2, newest first\): by-shell\.txt ×1 \(by shell\), src\/parser\.ts ×1/,
        /Files read \(1, newest first\): README\.md ×1/,
        /Failed when last run: `exit 7` → exit 7/,
        /Open todos \(1\): \[pending\] Write the CRLF test/,
        /Git: branch main at [0-9a-f]{12}/,
        /Compactions of this session so far: 0/,
      ]) {
        expect(first).toMatch(fact)
      }
      expect(occurrences(second ?? "", "PRIOR-SUMMARY-0 is kept in full.")).toBe(1)
      expect(second).toContain(BRIEF)
      expect(second).toContain("Compactions of this session so far: 1")
      const outputs = task.project
        .read("probe.jsonl")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
      for (const { prompt, context } of outputs) {
        expect(context).toHaveLength(1)
        expect(prompt).toContain(context[0])
        expect(context[0]).toContain(`Task ${task.taskID}`)
      }
    },
  )

  test(promised("compaction.C4", "a model of 8,000 tokens does not compact in a loop"), async () => {
    const longBrief = `${"The parser must stay fast. ".repeat(600)}`
    const work = async (bundle: "none" | "project"): Promise<SharedTask> => {
      let step = 0
      const task = await openSharedTask(
        binary,
        ({ kind, conversation }) => {
          const promptTokens = Math.ceil(conversation.length / 4)
          if (kind === "compaction") return { text: "A summary.", promptTokens }
          if (step++ > 3) return { text: "Finished.", promptTokens }
          return { ...bash("true"), promptTokens: step === 1 ? 7_900 : promptTokens }
        },
        { context: 8_000, output: 1_000, bundle },
      )
      await task.say(`${task.message}\n${longBrief}`)
      return task
    }
    const [task, plain] = [await work("project"), await work("none")]
    // 1.14.41 compacts this twice: it keeps the newest turn beside the first summary, which fills the context again.
    expect(task.model.received("compaction")).toHaveLength(plain.model.received("compaction").length)
    const afterwards = task.model.received("turn").at(1)?.conversation ?? ""
    expect(afterwards.length).toBeLessThan(8_000 * 0.1 * 4 + 400)
    expect(afterwards).toMatch(/cut to \d+ of \d+ characters/)
  })

  test(promised("compaction.C3", "a summary from before the bundle was installed is carried over, once"), async () => {
    const task = await openSharedTask(binary, (request) => {
      if (request.kind === "compaction")
        return { text: request.index === 0 ? "THE-SUMMARY-WITHOUT-BATON" : "A summary." }
      return newestWords(request).includes("COMPACT-NOW") ? COMPACTING_STEP : { text: "Noted." }
    })
    const plugins = join(task.project.directory, ".opencode", "plugins")
    renameSync(plugins, `${plugins}-off`)
    const id = await task.say("COMPACT-NOW, without Baton")
    await task.restart()
    renameSync(`${plugins}-off`, plugins)
    await task.say(`${task.message}\nCOMPACT-NOW`, id)
    const second = task.model.received("compaction")[1]?.conversation ?? ""
    expect(occurrences(second, "THE-SUMMARY-WITHOUT-BATON")).toBe(1)
    expect(second).toContain(`Task ${task.taskID}`)
  })

  test(
    promised("compaction.C2", "an unusable handoff.md gives the built-in text and one warning with file and reason"),
    async () => {
      const task = await openCompactedOnce(binary)
      task.project.write("prompts/handoff.md", " \n")
      await task.say(task.message)
      await task.logged("compaction recorded")
      expect(task.model.received("compaction")[0]?.conversation).toContain("# Write the handoff")
      const warnings = task.project.batonLog().filter((line) => line.includes("handoff prompt unusable"))
      expect(warnings).toHaveLength(1)
      expect(warnings[0]).toContain("handoff.md")
      expect(warnings[0]).toContain("it is empty")
    },
  )
})

describe.each(NEWEST_OR_ALL)("OpenCode $version", (binary) => {
  test(promised("compaction.C3", "killed in a summary and resumed, it carries the prior one on"), async () => {
    let steps = 2
    let kill = (): void => {}
    const task = await openTaskProject(binary, ({ kind, index }) => {
      if (kind === "compaction") {
        if (index === 1) kill()
        return { text: `Summary ${index + 1}.` }
      }
      return steps-- > 0 ? COMPACTING_STEP : { text: "Finished." }
    })
    const onStart = (pid: number) => {
      kill = () => process.kill(pid, "SIGKILL")
    }
    expect(await task.run(task.message, { onStart })).toMatchObject({ signal: "SIGKILL" })
    steps = 1
    const resumed = await task.run("go on", { args: ["--session", newestSessionID(task)] })
    expect(resumed.exitCode, resumed.stderr).toBe(0)
    const [, , repeated, next] = task.model.received("compaction").map(({ conversation }) => conversation)
    expect(repeated).toContain("Summary 1.")
    expect(next).toContain("Summary 3.")
  })
})
