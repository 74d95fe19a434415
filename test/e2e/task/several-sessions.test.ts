import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  closeTaskProjects,
  endsOf,
  eventually,
  LEDGER_WAIT_MS,
  MODEL,
  newestWords,
  openSharedTask,
  openTaskProject,
  type Script,
  type SharedTask,
  type TaskProject,
} from "../../support/index.ts"
import { lastTurn } from "../sessions.ts"

closeTaskProjects()

const compact = ({ client }: SharedTask, id: string) => client.session.summarize({ path: { id }, body: MODEL })

const lastPrompt = ({ model }: SharedTask): string => model.received("compaction").at(-1)?.conversation ?? ""

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("sessions.A2", "two sessions keep a handoff each, and are shown the other's"), async () => {
    const task: SharedTask = await openSharedTask(binary, ({ kind, index }) => ({
      text: kind === "compaction" ? `Summary ${index + 1}.` : "Noted.",
    }))
    const [first, second] = [await task.say(task.message), await task.say(task.message)]
    for (const [at, id] of [first, second, first].entries()) {
      await compact(task, id)
      await task.say("Go on.", id)
      const isThere = async () =>
        (await task.ledger.show(task.taskID)).description.includes(`Summary ${at + 1}.`) || undefined
      await eventually(`handoff ${at + 1}`, isThere, ...LEDGER_WAIT_MS)
    }
    const { logs } = await task.ledger.show(task.taskID)
    expect(logs.map(({ message }) => message)).toEqual([
      `Compaction 1: Summary 1. (session ${first})`,
      `Compaction 1: Summary 2. (session ${second})`,
      `Compaction 2: Summary 3. (session ${first})`,
    ])
    const hasBoth = async () => {
      const { description } = await task.ledger.show(task.taskID)
      const titles = [...description.matchAll(/^# Handoff after compaction (\d) \(session (\w+)/gm)]
      return titles.length === 2 && description.includes("Summary 3.")
        ? titles.map(([, number, id]) => [number, id])
        : undefined
    }
    expect(await eventually("both handoffs", hasBoth, ...LEDGER_WAIT_MS)).toEqual([
      ["2", first],
      ["1", second],
    ])
    const [, ofSecond, ofFirst] = task.model.received("compaction").map(({ conversation }) => conversation)
    expect(ofSecond).toMatch(new RegExp(`Another agent's handoff \\(session ${first}[^]*Summary 1\\.`))
    expect(ofFirst).toMatch(new RegExp(`Another agent's handoff \\(session ${second}[^]*Summary 2\\.`))
    expect(lastPrompt(task)).toContain("Summary 1.")
  })
})

const stateFiles = ({ project }: TaskProject): string[] => {
  const folder = join(project.directory, ".opencode/state/working")
  return existsSync(folder) ? readdirSync(folder) : []
}

/** Changes a file and runs a failing command; waits for ever when it is told to. */
const work =
  (task: () => TaskProject): Script =>
  async (request) => {
    const words = newestWords(request)
    const results = words.split("[tool]").length - 1
    // The note beside the message quotes what the user asked the session before.
    const [said = ""] = words.split("[Baton]")
    if (!said.includes("WORK")) return { text: "Noted." }
    if (results === 0)
      return {
        tool: "write",
        input: { filePath: join(task().project.directory, "src/lexer.ts"), content: "export {}\n" },
      }
    if (results === 1) return { tool: "bash", input: { command: "ls /no/such/folder", description: "Fails" } }
    return said.includes("HANG")
      ? { tool: "bash", input: { command: "sleep 600", description: "Hangs" } }
      : { text: "Done." }
  }

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  test(promised("sessions.A1", "without a compaction it leaves what it changed and what failed"), async () => {
    const task: TaskProject = await openTaskProject(
      binary,
      work(() => task),
    )
    await task.run(`${task.message}\nWORK`)
    await task.run(task.message)
    const turn = lastTurn(task)
    // 1.2.15 ends a run without waiting: what is left of its records is delivered by the next one.
    await task.run(task.message)
    expect(stateFiles(task)).toEqual([])
    const { description, logs } = await task.ledger.show(task.taskID)
    expect(description).toMatch(/# Work in progress \(session ses_/)
    expect(description).toContain("src/lexer.ts ×1")
    expect(description).toContain("Failed when last run: `ls /no/such/folder`")
    expect(logs).toEqual([])
    expect(turn).toContain("src/lexer.ts ×1")
    expect(turn).not.toContain("ended without a word")
  })
})

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test(promised("sessions.A1", "after a kill -9 the next one is told what changed and failed"), async () => {
    const task: TaskProject = await openTaskProject(
      binary,
      work(() => task),
    )
    const killed = await task.run(`${task.message}\nWORK HANG`, {
      onStart: (pid) =>
        void eventually("the command that hangs", () =>
          task.model.received("turn").length >= 3 && stateFiles(task).length === 1 ? true : undefined,
        ).then(() => setTimeout(() => process.kill(pid, "SIGKILL"), 1_000)),
    })
    expect(killed.signal).toBe("SIGKILL")
    await task.run(task.message)
    const turn = lastTurn(task)
    expect(turn).toContain("ended without a word")
    expect(turn).toContain("src/lexer.ts ×1")
    expect(turn).toContain("Failed when last run: `ls /no/such/folder`")
    await task.run(task.message)
    expect(stateFiles(task)).toEqual([])
    const { description, logs } = await task.ledger.show(task.taskID)
    expect(description).toContain("src/lexer.ts ×1")
    expect(logs.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^Session ses_\w+ ended without a word in the turn of 2/),
    ])
  })
})
