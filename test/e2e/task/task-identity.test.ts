import { existsSync, readdirSync } from "node:fs"
import { basename, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  ALL_LINES,
  BRIEF,
  COMPACTING_STEP,
  eventually,
  LEDGER_WAIT_MS,
  newestOrder,
  offers,
  openSharedTask,
  openTaskProject,
  type Script,
  testsOn,
  testsOnce,
} from "../../support/index.ts"
import { passOver, returns } from "../../support/model/pass-over-script.ts"
import { comparableRequests } from "../../support/model/request-size.ts"
import {
  compact,
  compactionsOf,
  compactsOnDemand,
  forkSession,
  handOver,
  lastTurn,
  liveState,
  recordsOf,
  runWell,
  turnsOf,
} from "../sessions.ts"

const CORRECTION = "No, use tabs instead of spaces in the formatter."

/** An agent that follows the newest message of its session; a reviewer returns at once. */
const script: Script = (request) => {
  if (request.kind === "compaction") return { text: "Something was done." }
  const last = newestOrder(request)
  if (last.includes("[tool]")) return { text: "Done." }
  if (last.includes("Hand this work over"))
    return { tool: "handoff_session", input: { prompt: "Go on with it.", files: ["README.md"] } }
  if (last.includes("REVIEW-THIS")) return returns({ decision: "approved" })
  if (last.includes("DELEGATE")) return passOver({ subagent: "audit", objective: "REVIEW-THIS please" })
  if (last.includes("COMPACT-NOW")) return COMPACTING_STEP
  return { text: "I wrote it with spaces." }
}

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  const everywhere = testsOn(binary)
  once(promised("task.B2", "a session whose first request was refused knows its task in a new process"), async () => {
    let refuses = true
    const task = await openTaskProject(binary, (request) =>
      refuses && request.kind === "turn" ? { status: 401, message: "the key is not valid" } : compactsOnDemand(request),
    )
    await task.run(task.message)
    refuses = false
    // 1.2.15 may end before its log names the session.
    await runWell(task, "COMPACT-NOW", { args: ["--continue"] })
    expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    expect(lastTurn(task)).toContain(BRIEF)
    expect(task.project.batonLog().join("\n")).toContain("task known from an earlier run")
  })

  once(promised("task.B3", "a later Task line re-binds the session, and the log says so"), async () => {
    const task = await openSharedTask(binary, compactsOnDemand)
    const other = await task.ledger.prog("add", "Another task", "-p", "demo")
    const id = await task.say(task.message)
    await task.restart()
    await task.say(`Task: ${other}\nCOMPACT-NOW`, id)
    expect(lastTurn(task)).toContain(`Task: ${other}`)
    expect(lastTurn(task)).not.toContain(`- Task: ${task.taskID}`)
    await task.logged("session changed its task")
    await task.records(1, other)
    expect(await task.records(0)).toEqual([])
    const elsewhere = await task.say(task.message)
    await compact(task, elsewhere)
    await task.records(1)
    await task.say(task.message, id)
    expect(lastTurn(task)).toContain("Summary 1.")
    expect(lastTurn(task)).toContain(`by session ${elsewhere}`)
    expect(lastTurn(task)).not.toContain(`on task ${other}`)
    await compact(task, id)
    expect(compactionsOf(task).at(-1)).toContain(`Handoff of an earlier session on this task (session ${elsewhere}`)
  })

  everywhere(promised(["words.A1", "words.A2"], "a fork has what the user said to its original once"), async () => {
    const task = await openSharedTask(binary, compactsOnDemand)
    const id = await task.say(task.message)
    await task.say("SAID-ONCE: mind the lexer.", id)
    await compact(task, id)
    await task.records(1)
    const fork = await forkSession(task, id)
    await task.say("Go on.", fork)
    await compact(task, fork)
    await task.say("Go on again.", fork)
    const words = lastTurn(task).split("The user's own words, newest first").slice(1)
    expect(words.length).toBeGreaterThan(0)
    for (const one of words) expect(one.split("SAID-ONCE").length - 1).toBe(1)
  })

  test(promised(["task.B2", "compaction.C7"], "a fork compacted at once knows its task, records its own"), async () => {
    const task = await openSharedTask(binary, compactsOnDemand)
    const id = await task.say(task.message)
    await compact(task, await forkSession(task, id))
    expect(compactionsOf(task).at(-1)).toContain(`- Task: ${task.taskID}`)
    expect(compactionsOf(task).at(-1)).toContain(BRIEF)
    expect(await task.records(1)).toHaveLength(1)

    await task.say("COMPACT-NOW", id)
    expect(await task.records(2)).toHaveLength(2)
    await task.say("Go on.", await forkSession(task, id))
    for (const part of ["was compacted before this session was forked", `- Task: ${task.taskID}`, BRIEF])
      expect(lastTurn(task)).toContain(part)
    expect(await recordsOf(task)).toHaveLength(2)
    const isHandedOver = async () =>
      (await task.ledger.show(task.taskID)).description.includes(`(session ${id}, `) || undefined
    await eventually("the handoff", isHandedOver, ...LEDGER_WAIT_MS)
  })

  once(promised("task.B4", "without a task the model receives what it receives without the bundle"), async () => {
    const requestsOf = async (bundle: "none" | "project"): Promise<unknown> => {
      const task = await openSharedTask(binary, compactsOnDemand, { bundle })
      // The first summary ends a plain session there.
      const start = offers(binary, "OpenCode's summaries") ? "COMPACT-NOW please, there" : "There"
      await task.say(`${start} is no task here: Task: re-added tests`)
      const requests = await comparableRequests(task.model, task.project, 1)
      await task.restart()
      const state = join(task.project.directory, ".opencode", "state")
      // The live state covers every session, and the mark the folder; without a task no other state is stored.
      const kept = existsSync(state)
        ? readdirSync(state).filter((name) => !["live", ".gitignore", ".mark"].includes(name))
        : []
      expect(kept).toEqual([])
      return requests
    }
    const withBundle = await requestsOf("project")
    expect(withBundle).toEqual(await requestsOf("none"))
  })

  everywhere(
    promised("identity.A2", "one task is the same in summary, turn, handoff, subagent, live state and ledger"),
    async () => {
      const task = await openSharedTask(binary, script)
      const { taskID, project, ledger, say } = task
      project.write(".opencode/pass-over.json", '{"defaults":{"auto_return":true}}\n')
      const root = await say(task.message)
      await say(CORRECTION, root)

      await say("DELEGATE the review.", root)
      const child = turnsOf(task).find((conversation) => conversation.includes("REVIEW-THIS please"))
      expect(child).toContain(taskID)
      expect(child).toContain("Teach the parser CRLF")
      expect(turnsOf(task).join("\n")).toContain("audit → completed, decision: approved")

      await say("COMPACT-NOW", root)
      expect(compactionsOf(task).at(-1)).toContain(`Task: ${taskID}`)
      for (const part of ["Something was done.", `Task: ${taskID}`, "worker", BRIEF])
        expect(lastTurn(task)).toContain(part)

      const handedTo = await handOver(task, root, "finish the parser")
      await say("Go on.", handedTo)
      for (const part of [`Continuing work from session ${root}`, "# Worker", `Task: ${taskID}`])
        expect(lastTurn(task)).toContain(part)
      const bound = JSON.parse(project.read(`.opencode/state/tasks/${handedTo}.json`))
      expect(bound).toMatchObject({ version: 1, steps: [{ taskID, role: "worker" }] })

      await eventually("the live state of the new session", () => {
        const state = liveState(project.directory)
        return state?.root_opencode_session_id === handedTo && state.extensions?.task?.id === taskID ? state : undefined
      })
      const correction = async () => {
        const listed = await ledger.prog("context", "-p", basename(project.directory), "--summary", "--json")
        const all: { summary: string; detail: string }[] = JSON.parse(listed)
        return all.find(({ summary }) => summary === CORRECTION)
      }
      const learned = await eventually("the learning in the ledger", correction, ...LEDGER_WAIT_MS)
      expect(learned.detail).toContain(taskID)

      const wholeLog = async () => {
        const all = await recordsOf(task)
        const isThere = (part: string) => all.some((message) => message.includes(part))
        return ["Compaction 1", `Handoff to ${handedTo}`, "audit"].every(isThere) ? all : undefined
      }
      const messages = await eventually("the log of the task", wholeLog, ...LEDGER_WAIT_MS)
      expect(messages.filter((message) => message.startsWith("Compaction 1"))).toHaveLength(1)
    },
  )
})
