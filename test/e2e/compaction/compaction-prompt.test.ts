import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  ALL_LINES,
  BRIEF,
  bash,
  COMPACTING_PROMPT_TOKENS,
  COMPACTING_STEP,
  killOpenCode,
  type ModelReply,
  NEWEST_LINES,
  newestSessionID,
  occurrences,
  offers,
  openSharedTask,
  openTaskProject,
  type Script,
  type SharedTask,
  TASK,
  testsOnce,
} from "../../support/index.ts"
import { liveFiles } from "../../support/opencode/live-stream.ts"
import { compactionsOf, compactsOnDemand, lastTurn, runWell, turnsOf, withoutPlugins } from "../sessions.ts"

const HOOK_PROBE = `import { appendFileSync } from "node:fs"
export const Probe = async ({ directory }) => ({
  "experimental.session.compacting": async (_input, output) =>
    appendFileSync(directory + "/probe.jsonl", JSON.stringify(output) + "\\n"),
})
`

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const hasTodos = offers(binary, "todos")
  test(
    promised(["compaction.C3", "compaction.C5"], "the request for a summary has block, prior summary and facts once"),
    async () => {
      const todos = [{ id: "1", content: "Write the CRLF test", status: "pending", priority: "high" }]
      const steps: ((directory: string) => ModelReply)[] = [
        (directory) => ({ tool: "write", input: { filePath: `${directory}/src/parser.ts`, content: "1\n" } }),
        (directory) => ({ tool: "read", input: { filePath: `${directory}/README.md` } }),
        ...(hasTodos ? [() => ({ tool: "todowrite", input: { todos } })] : []),
        // OpenCode may take the step's first snapshot while the tool already runs; this command runs longer than the snapshot.
        () => bash("sleep 2 && echo made > by-shell.txt"),
        () => bash("exit 7", COMPACTING_PROMPT_TOKENS),
        () => COMPACTING_STEP,
      ]
      let step = 0
      const script: Script = ({ kind, index }) => {
        if (kind === "compaction") return { text: `PRIOR-SUMMARY-${index} is kept in full.` }
        return steps[step++]?.(task.project.directory) ?? { text: "Finished." }
      }
      const task: SharedTask = await openSharedTask(binary, script, { config: { snapshot: true } })
      const isProbed = offers(binary, "the prompt's hook")
      if (isProbed) task.project.write(".opencode/plugins/z-probe.ts", HOOK_PROBE)
      await task.say(task.message)
      const [first = "", second = ""] = compactionsOf(task)
      const known = [`Task ${task.taskID}`, TASK.title, TASK.definitionOfDone, TASK.specification, "### How to work"]
      for (const part of known) expect(occurrences(first, part), part).toBe(1)
      for (const fact of [
        /Files changed \(2, newest first\): by-shell\.txt ×1 \(by shell\), src\/parser\.ts ×1/,
        /Files read \(1, newest first\): README\.md ×1/,
        /Failed when last run: `exit 7` → exit 7/,
        ...(hasTodos ? [/Open todos \(1\):\n {2}- \[pending\] Write the CRLF test/] : []),
        /Git: branch main at [0-9a-f]{12}/,
        /Compactions of this session so far: 0/,
      ])
        expect(first).toMatch(fact)
      expect(occurrences(second, "PRIOR-SUMMARY-0 is kept in full.")).toBe(1)
      expect(second).toContain(BRIEF)
      expect(second).toContain("Compactions of this session so far: 1")
      const probed = isProbed ? task.project.read("probe.jsonl").trim().split("\n") : []
      for (const line of probed) {
        const { prompt, context } = JSON.parse(line)
        expect(context).toEqual([expect.stringContaining(`Task ${task.taskID}`)])
        expect(prompt).toContain(context[0])
      }
      for (const branch of ["session has a task", "compaction prompt replaced", "compaction recorded"])
        expect(await task.logged(branch)).toMatch(/ses_[A-Za-z0-9]{20,}/)
    },
  )

  once(promised("compaction.C4", "a model of 8,000 tokens does not compact in a loop"), async () => {
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
    expect(compactionsOf(task)).toHaveLength(compactionsOf(plain).length)
    const afterwards = turnsOf(task)[1] ?? ""
    expect(afterwards.length).toBeLessThan(8_000 * 0.1 * 4 + 400)
    expect(afterwards).toMatch(/cut to \d+ of \d+ characters/)
  })

  once(promised(["task.B2", "compaction.C3"], "a session from before the bundle is found by its history"), async () => {
    const task = await openSharedTask(binary, compactsOnDemand)
    const id = await withoutPlugins(task, async () => {
      const session = await task.say(`${task.message}\nCOMPACT-NOW`)
      await task.restart()
      return session
    })
    expect(task.project.batonLog()).toEqual([])
    await task.say("COMPACT-NOW", id)
    const [, second = ""] = compactionsOf(task)
    expect(occurrences(second, "Summary 1.")).toBe(1)
    expect(second).toContain(`Task ${task.taskID}`)
    expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    await task.logged("origin=history")
  })
})

describe.each(NEWEST_LINES)("OpenCode $version", (binary) => {
  test(
    promised(["compaction.C3", "live-state.B3"], "a session killed in a summary is resumed and carries on"),
    async () => {
      let steps = 2
      let pid = 0
      const task = await openTaskProject(binary, async ({ kind, index }) => {
        if (kind === "compaction") {
          if (index === 1) await killOpenCode(pid)
          return { text: `Summary ${index + 1}.` }
        }
        return steps-- > 0 ? COMPACTING_STEP : { text: "Finished." }
      })
      const onStart = (started: number) => {
        pid = started
      }
      expect(await task.run(task.message, { onStart })).toMatchObject({ signal: "SIGKILL" })
      steps = 1
      await runWell(task, "go on", { args: ["--session", newestSessionID(task)] })
      const [, , repeated, next] = compactionsOf(task)
      expect(repeated).toContain("Summary 1.")
      expect(next).toContain("Summary 3.")
      const { directory, read } = task.project
      if (!offers(binary, "live state")) return
      expect(liveFiles(directory).sort()).toEqual(["opencode-project-crashed.json", "opencode-project.json"])
      const wasIdle = (name: string) => JSON.parse(read(`.opencode/state/live/${name}.json`)).state.agent.is_idle
      expect(["opencode-project-crashed", "opencode-project"].map(wasIdle)).toEqual([false, true])
    },
  )
})
