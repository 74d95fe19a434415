import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { askedFile, pathWithFakeProg, putWaitingProgram } from "../../support/faults/fault-ledger-table.ts"
import {
  ALL_LINES,
  BRIEF,
  bash,
  COMPACTING_PROMPT_TOKENS,
  eventually,
  LEDGER_WAIT_MS,
  type ModelRequest,
  newestOrder,
  newestSessionID,
  newestWords,
  occurrences,
  offers,
  openSharedTask,
  openTaskProject,
  type Script,
  TASK,
  testsOnce,
} from "../../support/index.ts"
import { isLine2 } from "../../support/opencode/opencode-binary.ts"
import { compact, compactionsOf, lastTurn, runWell, turnsOf } from "../sessions.ts"

const COMMAND = /\bRUN: (.+)/

/** Runs the command that the newest message names, and reports; COMPACT-NOW fills the context. */
const obedient: Script = (request) => {
  if (request.kind === "compaction")
    return { text: "## Done\n- The lexer was read.\n\n## Next\n- Write the CRLF test." }
  const words = newestOrder(request)
  if (words.includes("[tool]")) return { text: "Noted." }
  const command = COMMAND.exec(words)?.[1]
  if (words.includes("COMPACT-NOW")) return bash(command ?? "true", COMPACTING_PROMPT_TOKENS)
  return command === undefined ? { text: "Noted." } : bash(command)
}

const bare = (taskID: string): string => `Task: ${taskID}\n${BRIEF}\n`

/** Begins a subagent's conversation, in OpenCode 2 behind a sentence of its own. */
const CHILD = /^\[user\] (?:You are a subagent[^\n]*\s+)?COUNT-THE-FILES/

/** Each message of a request, as sent. */
const sent = ({ body }: ModelRequest): string[] => body.messages.map((message) => JSON.stringify(message))

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  test(promised("start.A1", "the first request holds the task, the next begin with the same"), async () => {
    const task = await openTaskProject(binary, obedient)
    await runWell(task, `${bare(task.taskID)}RUN: prog start ${task.taskID}`)
    await runWell(task, "What is next?", { args: ["--session", newestSessionID(task)] })
    const turns = task.model.received("turn")
    expect(turns).toHaveLength(3)
    const first = turns[0]?.conversation ?? ""
    for (const part of [TASK.title, TASK.specification, TASK.definitionOfDone, "Status in prog: open", BRIEF])
      expect(occurrences(first, part), part).toBe(1)
    expect(first).toContain(`prog show ${task.taskID}`)
    expect(first).toContain(`prog log ${task.taskID}`)
    expect(first, "no role was stated").not.toContain("### How to work")
    for (const [at, turn] of turns.entries()) {
      const before = turns[at - 1]
      if (before) expect(sent(turn).slice(0, sent(before).length)).toEqual(sent(before))
    }
    for (const title of task.model.received("title")) expect(title.conversation).not.toContain("[Baton]")
  })

  test(promised(["start.A1", "start.A5"], "a first request that OpenCode makes late holds the task"), async () => {
    const task = await openTaskProject(binary, obedient)
    const answers = join(task.project.home, "the-ledger-answers")
    putWaitingProgram(task, answers)
    const path = ".opencode/plugins/compaction-handoff.ts"
    const hooks = "createCompactionHooks(openCore(input))"
    const plugin = task.project.read(path)
    expect(plugin).toContain(hooks)
    // Longer after the question than a request waits for the ledger, which answers only then.
    const late = `
import { statSync, writeFileSync } from "node:fs"
const askedAt = () => statSync(${JSON.stringify(askedFile(answers))}, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
const late = (hooks) => {
  const name = "experimental.chat.messages.transform"
  const own = hooks[name]
  const transform = async (...given) => {
    while (Date.now() - askedAt() < 2_700) await new Promise((resolve) => setTimeout(resolve, 50))
    writeFileSync(${JSON.stringify(answers)}, "")
    return own(...given)
  }
  return Object.defineProperty(hooks, name, { value: transform, enumerable: true })
}
`
    task.project.write(path, `${late}${plugin.replace(hooks, `late(${hooks})`)}`)
    const environment = { PATH: pathWithFakeProg(task), BATON_LEDGER: "real" }
    const { exitCode, stderr } = await task.run(task.message, { environment })
    expect(exitCode, stderr).toBe(0)
    const [first] = turnsOf(task)
    for (const part of [TASK.title, TASK.specification]) expect(first).toContain(part)
  })

  once(promised("start.A5", "a ledger that answers too late is asked by the agent, as it is told"), async () => {
    const task = await openTaskProject(binary, (request) => {
      const [, command] = /Ask it with `(prog show ts-[0-9a-f]+)`/.exec(request.conversation) ?? []
      if (request.index > 0 || command === undefined) return { text: "Noted." }
      writeFileSync(answers, "")
      return bash(command)
    })
    const answers = join(task.project.home, "the-ledger-answers")
    putWaitingProgram(task, answers)
    const environment = { PATH: pathWithFakeProg(task), BATON_LEDGER: "real" }
    const { exitCode, stderr } = await task.run(task.message, { environment })
    expect(exitCode, stderr).toBe(0)
    const [first, second = ""] = turnsOf(task)
    expect(first).not.toContain(TASK.specification)
    expect(second.slice(second.indexOf("[tool]"))).toContain("Lines may end in CRLF.")
  })

  once(promised("start.A1", "a small context gets no more of a huge task than a tenth of it"), async () => {
    const task = await openSharedTask(binary, obedient, { context: 8_000, output: 1_000 })
    const huge = await task.ledger.addTask({ ...TASK, specification: "The parser must stay fast. ".repeat(2_000) })
    await task.say(bare(huge))
    const [first = ""] = turnsOf(task)
    const note = first.slice(first.indexOf("[Baton]"))
    expect(note.length).toBeLessThanOrEqual(task.context * 0.1 * 4 + 20)
    expect(note).toMatch(/cut to \d+ of \d+ characters/)
  })

  const fully = promised(
    ["start.A1", "trust.B1"],
    "in serve, too, a role has its protocol, a child its parent's task, whatever task the order names",
  )
  test(fully, async () => {
    let order = ""
    const task = await openSharedTask(binary, (request) => {
      const words = newestWords(request)
      if (request.kind === "turn" && words.includes("DELEGATE") && !words.includes("[tool]")) {
        return { tool: "task", input: { description: "Look", prompt: order, subagent_type: "general" } }
      }
      return obedient(request)
    })
    await task.say(task.message)
    expect(lastTurn(task)).toContain("### How to work")
    await task.say(`${bare(task.taskID)}COMPACT-NOW`)
    expect(lastTurn(task)).toContain(`## Task ${task.taskID}`)
    expect(lastTurn(task)).not.toContain("### How to work")
    expect(compactionsOf(task)[0]).not.toContain("The message above names task")
    const foreign = await task.ledger.addTask({ ...TASK, title: "Pay the invoices" })
    order = `COUNT-THE-FILES please\nTask: ${foreign}`
    const root = await task.say(`${bare(task.taskID)}DELEGATE`)
    const child = turnsOf(task).find((conversation) => CHILD.test(conversation))
    expect(child).toContain(`The session that started you works on task ${task.taskID}`)
    expect(child).toContain(TASK.specification)
    expect(child).not.toContain("Pay the invoices")
    expect(child).not.toContain(`prog done ${task.taskID}`)
    await task.say(`Task: ${foreign}`, root)
    const [subagent] = (await task.client.session.children({ path: { id: root } })).data ?? []
    await task.say("Count again.", subagent?.id)
    expect(lastTurn(task)).toContain(`The session that started you works on task ${foreign}`)
  })

  once(promised("start.A2", "a new session is told of the last handoff, and can read that session"), async () => {
    const task = await openSharedTask(binary, (request) => {
      const words = newestWords(request)
      const [earlier] = /ses_\w+/.exec(words) ?? []
      if (request.kind === "turn" && words.includes("READ-IT") && !words.includes("[tool]"))
        return { tool: "read_session", input: { sessionID: earlier ?? "none" } }
      return obedient(request)
    })
    const { taskID } = task
    const earlier = await task.say(`${bare(taskID)}COMPACT-NOW`)
    const commit = "git -c user.name=T -c user.email=t@example.invalid commit -q --allow-empty -m more"
    await task.say(`RUN: ${commit} && ${commit}`)
    await task.ledger.prog("log", taskID, "Checkpoint: the lexer is read")
    await task.restart()
    const before = task.model.received("turn").length
    await task.say(`Task: ${taskID}\nREAD-IT`)
    const [request, next] = task.model.received("turn").slice(before)
    const text = request?.conversation ?? ""
    for (const part of ["Write the CRLF test.", "Checkpoint: the lexer is read", BRIEF, TASK.specification])
      expect(occurrences(text, part), part).toBe(1)
    expect(text).toMatch(new RegExp(`Written \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC by session ${earlier}`))
    expect(text).toMatch(/Now: branch main at [0-9a-f]{12}, 2 commits since/)
    if (offers(binary, "handoff")) {
      expect(request?.tools).toContain("read_session")
      expect(next?.conversation).toContain(`## User\\nTask: ${taskID}`.replaceAll("\\n", "\n"))
    }
    await task.logged("the request begins with the task")
  })

  once(promised("start.A2", "the first session's words outlive a careless compaction of the next"), async () => {
    const handoff = "The fold in line 12 is proven; the CRLF test comes next."
    const task = await openSharedTask(binary, ({ kind, index }) => {
      if (kind !== "compaction") return { text: "Noted." }
      const good = `## Done\n\n- ${handoff}\n\n## Next steps\n\n- Write it.`
      return { text: index === 0 ? good : "Some work was done and it went fine." }
    })
    // On OpenCode 2 the checkpoint, in which the careless summary gives way, holds both beside the note.
    const times = isLine2(binary) ? 2 : 1
    const { say, taskID } = task
    await compact(task, await say(bare(taskID)))
    await task.records(1)

    const second = await say(`Task: ${taskID}`)
    await compact(task, second)
    await task.records(2)
    await say("What is next?", second)
    const counts = (text = "") => [occurrences(text, BRIEF), occurrences(text, handoff)]
    expect(counts(compactionsOf(task)[1])).toEqual([1, 1])
    expect(counts(lastTurn(task)), lastTurn(task)).toEqual([times, times])
    await compact(task, second)
    await task.records(3)
    expect(counts(compactionsOf(task)[2])[1]).toBe(times)
    // The handoff is written behind the log line.
    const isWritten = async () =>
      (await task.ledger.show(taskID)).description.includes(`(session ${second}`) || undefined
    await eventually("the second session's handoff", isWritten, ...LEDGER_WAIT_MS)

    await say(`Task: ${taskID}`)
    expect(lastTurn(task)).toContain(`by session ${second}`)
    expect(occurrences(lastTurn(task), BRIEF)).toBe(1)
  })

  once(promised("start.A3", "an unknown id is said once, with the nearest; a closed task is, too"), async () => {
    const task = await openSharedTask(binary, obedient)
    const wrong = task.taskID.replace(/.$/, (digit) => (digit === "7" ? "8" : "7"))
    await task.say(`${bare(wrong)}COMPACT-NOW`)
    const [first = ""] = turnsOf(task)
    expect(occurrences(first, "has no such task")).toBe(1)
    expect(first).toContain(`${task.taskID} ("${TASK.title}", open)`)
    expect(lastTurn(task)).toContain(`The ledger has no task ${wrong}`)
    for (const text of [first, lastTurn(task)]) expect(text).not.toContain(`prog show ${wrong}`)
    const [done, canceled] = [task.taskID, await task.ledger.addTask(TASK)]
    await task.ledger.prog("done", done)
    await task.ledger.prog("cancel", canceled)
    for (const [status, id] of Object.entries({ done, canceled })) {
      await task.say(bare(id))
      expect(lastTurn(task)).toContain(`The task is ${status} already`)
    }
  })
})
