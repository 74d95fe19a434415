import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  closeTaskProjects,
  endsOf,
  eventually,
  LEDGER_WAIT_MS,
  newestWords,
  openSharedTask,
  openTaskProject,
  type Script,
  TASK,
  type TaskProject,
} from "../../support/index.ts"
import { runProgram } from "../../support/opencode/opencode-run.ts"
import { compact, compactionsOf, lastTurn } from "../sessions.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("sessions.A2", "two sessions keep a handoff each, and are shown the other's"), async () => {
    const task = await openSharedTask(binary, ({ kind, index }) => ({
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
    const { logs, description } = await task.ledger.show(task.taskID)
    expect(logs.map(({ message }) => message)).toEqual([
      `Compaction 1: Summary 1. (session ${first})`,
      `Compaction 1: Summary 2. (session ${second})`,
      `Compaction 2: Summary 3. (session ${first})`,
    ])
    const titles = description.match(/^# Handoff after compaction \d \(session \w+/gm)
    const newest = `# Handoff after compaction 2 (session ${first}`
    expect(titles).toEqual([newest, `# Handoff after compaction 1 (session ${second}`])
    const [, ofSecond, ofFirst] = compactionsOf(task)
    expect(ofSecond).toMatch(new RegExp(`Another agent's handoff \\(session ${first}[^]*Summary 1\\.`))
    expect(ofFirst).toMatch(new RegExp(`Another agent's handoff \\(session ${second}[^]*Summary 2\\.`))
    expect(ofFirst).toContain("Summary 1.")
  })

  test(promised("outbox.A1", "what was recorded for an unknown task is brought to the right one"), async () => {
    const task = await openSharedTask(binary, ({ kind }) => ({
      text: kind === "compaction" ? "Two of five files are done." : "Noted.",
    }))
    const UNKNOWN = "ts-ffffff"
    const program = join(task.project.directory, ".opencode/baton/bin/baton")
    const options = { project: task.project, environment: { BATON_OPENCODE: binary.path } }
    const outbox = (...args: string[]) => runProgram([program, "outbox", ...args], options)
    const session = await task.say(task.message.replace(task.taskID, UNKNOWN))
    await compact(task, session)
    await task.say("Go on.", session)
    const parked = async () => {
      const { stdout } = await outbox()
      return stdout.split(`the ledger has no task ${UNKNOWN}`).length > 2 ? stdout : undefined
    }
    expect(await eventually("two parked records", parked, ...LEDGER_WAIT_MS)).toContain(`log of ${UNKNOWN}`)

    const moved = await outbox("retarget", task.taskID)
    expect(moved, moved.stdout + moved.stderr).toMatchObject({ exitCode: 0 })
    expect(moved.stdout).toMatch(/^delivered .* log of .*\ndelivered .* handoff of /)
    expect((await outbox()).stdout).toBe("No records\n")
    const { logs, description } = await task.ledger.show(task.taskID)
    const record = `Compaction 1: Two of five files are done. (session ${session})`
    expect(logs.map(({ message }) => message)).toEqual([record])
    expect(description.startsWith(TASK.specification)).toBe(true)
    for (const part of [`# Handoff after compaction 1 (session ${session}`, "Two of five files are done."])
      expect(description).toContain(part)
  })
})

const stateFiles = ({ project }: TaskProject): string[] => {
  const folder = join(project.directory, ".opencode/state/working")
  return existsSync(folder) ? readdirSync(folder) : []
}

/** Changes a file and runs a failing command; waits for ever when it is told to. */
const work: Script = (request) => {
  const words = newestWords(request)
  const results = words.split("[tool]").length - 1
  // The note beside the message quotes what the user asked the session before.
  const [said = ""] = words.split("[Baton]")
  if (!said.includes("WORK")) return { text: "Noted." }
  if (results === 0) return { tool: "write", input: { filePath: "src/lexer.ts", content: "export {}\n" } }
  if (results === 1) return bash("ls /no/such/folder")
  return said.includes("HANG") ? bash("sleep 600") : { text: "Done." }
}

const DONE_AND_FAILED = ["src/lexer.ts ×1", "Failed when last run: `ls /no/such/folder`"] as const

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  test(promised("sessions.A1", "without a compaction it leaves what it changed and what failed"), async () => {
    const task = await openTaskProject(binary, work)
    await task.run(`${task.message}\nWORK`)
    await task.run(task.message)
    const turn = lastTurn(task)
    // 1.2.15 ends a run without waiting: what is left of its records is delivered by the next one.
    await task.run(task.message)
    expect(stateFiles(task)).toEqual([])
    const { description, logs } = await task.ledger.show(task.taskID)
    expect(description).toMatch(/# Work in progress \(session ses_/)
    for (const part of DONE_AND_FAILED) expect(description).toContain(part)
    expect(logs).toEqual([])
    expect(turn).toContain(DONE_AND_FAILED[0])
    expect(turn).not.toContain("ended without a word")
  })
})

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test(promised("sessions.A1", "after a kill -9 the next one is told what changed and failed"), async () => {
    const task = await openTaskProject(binary, work)
    const killed = await task.run(`${task.message}\nWORK HANG`, {
      onStart: (pid) =>
        void eventually("the command that hangs", () =>
          task.model.received("turn").length >= 3 && stateFiles(task).length === 1 ? true : undefined,
        ).then(() => setTimeout(() => process.kill(pid, "SIGKILL"), 1_000)),
    })
    expect(killed.signal).toBe("SIGKILL")
    await task.run(task.message)
    const turn = lastTurn(task)
    for (const part of ["ended without a word", ...DONE_AND_FAILED]) expect(turn).toContain(part)
    await task.run(task.message)
    expect(stateFiles(task)).toEqual([])
    const { description, logs } = await task.ledger.show(task.taskID)
    expect(description).toContain(DONE_AND_FAILED[0])
    const ended = expect.stringMatching(/^Session ses_\w+ ended without a word in the turn of 2/)
    expect(logs.map(({ message }) => message)).toEqual([ended])
  })
})
