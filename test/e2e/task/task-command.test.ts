import { basename } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  ALL_LINES,
  COMPACTING_STEP,
  eventually,
  LEDGER_WAIT_MS,
  NEWEST_OR_ALL,
  newestOrder,
  newestWords,
  occurrences,
  offers,
  openSharedTask,
  openTaskProject,
  type Script,
  type SharedTask,
  TASK,
  testsOnce,
} from "../../support/index.ts"
import { isTmuxHere, startTui } from "../../support/opencode/tui.ts"
import { compact, createSession, expectInOrder, lastTurn, messagesOf, turnsOf } from "../sessions.ts"

const LONG = "Teach the parser CRLF line ends, without touching the lexer. Keep the public API."
const CORRECTION = "No, use tabs instead of spaces in the formatter."
const AGENT = "reader"
/** An agent that may not use bash. */
const CONFIG = { agent: { [AGENT]: { mode: "primary", permission: { bash: "deny" } } } }

const script: Script = ({ kind, conversation }) => {
  if (kind === "compaction") return { text: "It went fine." }
  const words = newestOrder({ conversation })
  if (words.includes("LOG-IT") && !words.includes("[tool]"))
    return {
      tools: [
        { tool: "task_log", input: { message: "Checkpoint: read." } },
        { tool: "task_show", input: {} },
      ],
    }
  if (words.includes("COMPACT-NOW") && !words.includes("[tool]")) return COMPACTING_STEP
  return { text: "Noted." }
}

const command = async ({ client }: SharedTask, id: string, given: string): Promise<void> => {
  const { error } = await client.session.command({ path: { id }, body: { command: "task", arguments: given } })
  if (error) throw new Error(`/task ${given} failed: ${JSON.stringify(error)}`)
}

/** The answer of /task: OpenCode 1 gives it to the model, OpenCode 2 shows it as a line. */
const answerTo = async (task: SharedTask, id: string, given: string): Promise<string> => {
  await command(task, id, given)
  if (offers(task.binary, "answers to the model")) return newestWords({ conversation: lastTurn(task) })
  const answer = (await messagesOf(task, id)).at(-1)?.parts[0]
  return answer?.type === "text" ? answer.text : ""
}

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  test(promised("task.D1", "/task begins, shows, takes off, makes and finishes a task"), async () => {
    const task = await openSharedTask(binary, script)
    const { taskID, ledger } = task
    const id = await createSession(task)
    await command(task, id, `${taskID} Mind the lexer.`)
    expect(lastTurn(task)).toContain(`[user] Task: ${taskID}\n\nMind the lexer.`)
    expect(occurrences(lastTurn(task), TASK.specification)).toBe(1)

    expect(await answerTo(task, id, "")).toContain(`${taskID}, ${TASK.title} (open)`)
    await command(task, id, "off")
    if (offers(binary, "answers to the model")) expect(lastTurn(task)).not.toContain(TASK.specification)
    await task.restart()
    await task.say("Go on.", id)
    expect(lastTurn(task), "off outlives a restart").not.toContain(TASK.specification)

    await command(task, id, "new Write the CRLF test")
    const made = /Task: (ts-\w+)\n\nWrite the CRLF test/.exec(newestWords({ conversation: lastTurn(task) }))?.[1] ?? ""
    expect(lastTurn(task)).toContain(`## Task ${made}`)
    await command(task, id, "done")
    expect(await ledger.show(made)).toMatchObject({ title: "Write the CRLF test", status: "done" })
  })

  once(promised("task.D2", "with autoTask the first message is a task, which outlives a compaction"), async () => {
    const task = await openSharedTask(binary, script)
    task.project.write(".opencode/baton.json", JSON.stringify({ autoTask: true }))
    await task.restart()
    // The shared server's tests have one ledger.
    const tasks = () => task.ledger.prog("list", "-p", basename(task.project.directory))
    await task.say("Where does the lexer handle the line ends of a string?")
    expect(await tasks()).not.toContain("ts-")
    const id = await task.say(LONG)
    const list = await tasks()
    expect(list).toContain("Teach the parser CRLF line ends, without touching the lexer")
    expect(lastTurn(task)).toMatch(/\[Baton\] The message above is task ts-\w+/)
    expect(occurrences(lastTurn(task), LONG)).toBe(1)
    await compact(task, id)
    await task.say("Go on with what comes next in this work, please, as far as it goes.", id)
    expect(lastTurn(task)).toContain(LONG)
    expect(await tasks(), "the second message is none").toBe(list)
  })

  test(
    promised("queue.A5", "/task shows the task to come back for first, with what is next; a word searches"),
    async () => {
      const task = await openSharedTask(binary, script)
      const { ledger } = task
      const add = async (title: string): Promise<string> =>
        (await ledger.prog("add", title, "-p", basename(task.project.directory))).trim()
      const begun = await add("Teach the lexer CRLF")
      const ready = await add("Write the CRLF test")
      const taken = await add("Mend the build")
      const waiting = await add("Release it")
      await ledger.prog("start", begun)
      await ledger.prog("log", begun, "Half of the lexer reads CRLF.")
      await ledger.prog("claim", taken, "--as", "ada")
      await ledger.prog("blocks", begun, waiting)
      const id = await createSession(task)
      const shown = (given: string) => answerTo(task, id, given)
      const overview = await shown("")
      expectInOrder(overview, [
        "This session has no task.",
        "In progress and free, in ",
        `- ${begun}  Teach the lexer CRLF\n  just now, last: Half of the lexer reads CRLF.`,
        "Ready in ",
        `- ${ready}  Write the CRLF test`,
        `Waiting:\n- ${waiting}  Release it (waits for another task)`,
        `At work elsewhere:\n- ${taken}  Mend the build\n  claimed by ada`,
      ])
      expect(await shown("lexer crlf")).toContain(`- ${begun}  Teach the lexer CRLF (in progress)`)
      expect(await shown("nonsense")).toContain("has “nonsense” in its title or id")
      expect(lastTurn(task), "none of it binds").not.toContain("[Baton]")
    },
  )

  once(
    promised("queue.A4", "a first message's task is in no queue until /task queue, and a question makes none"),
    async () => {
      const task = await openSharedTask(binary, script)
      task.project.write(".opencode/baton.json", JSON.stringify({ autoTask: true }))
      await task.restart()
      const project = ["-p", basename(task.project.directory)]
      const prog = (...args: string[]) => task.ledger.prog(...args, ...project)
      await task.say("Explain to me how the charMap works in this package please, briefly.")
      expect(await prog("list")).not.toContain("ts-")
      const id = await task.say("Hallo,\nkannst du z.B. CSV und TSV in den Export einbauen?")
      expect(await prog("list")).toContain("[conversation] kannst du z.B. CSV und TSV in den Export einbauen")
      expect(await prog("ready")).not.toContain("CSV")
      expect(await answerTo(task, id, "queue")).toMatch(/Task ts-\w+ is in the queue/)
      const [made = ""] = /ts-\w+/.exec(await prog("ready")) ?? []
      expect(await prog("claim", "--next")).toContain(made)
      expect(await prog("list")).not.toContain("[conversation]")
    },
  )

  once(
    promised("task.D3", "an agent without bash reads and logs its task by tools, and no other has them"),
    async () => {
      const task = await openSharedTask(binary, script, { config: CONFIG })
      const { taskID, client } = task
      const say = async (agent: string, text: string) => {
        const id = await createSession(task)
        await client.session.prompt({ path: { id }, body: { agent, parts: [{ type: "text", text }] } })
        return task.model.received("turn").at(-1)
      }
      expect((await say(AGENT, "Hello."))?.tools).not.toContain("task_show")
      expect((await say("build", `Task: ${taskID}`))?.tools).not.toContain("task_show")
      const last = await say(AGENT, `Task: ${taskID}\nLOG-IT`)
      expect(last?.tools).toEqual(expect.arrayContaining(["task_show", "task_log"]))
      expect(last?.tools).not.toContain("bash")
      // The first tool of the session starts the task, beside the tool's own work.
      expect(last?.conversation).toMatch(new RegExp(`${taskID}: "${TASK.title}" \\((?:open|in_progress)\\)`))
      const logged = async () =>
        (await task.ledger.messages(taskID)).find((line) => /^Checkpoint: read\. \[[0-9a-f]{8}\]$/.test(line))
      await eventually("the line in the log", logged, ...LEDGER_WAIT_MS)
    },
  )
})

// scripts/test warns that this is left out.
describe.skipIf(!isTmuxHere()).each(NEWEST_OR_ALL)("OpenCode $version in a terminal", (binary) => {
  test(promised(["task.D1", "notices.A1"], "/task begins a task and shows it; events are told"), async () => {
    const task = await openTaskProject(binary, script)
    const tui = await startTui(binary, task.project)
    try {
      // OpenCode takes a command and one word that come at once for a choice from its list.
      tui.type("/task ")
      await tui.shows(/┃ +\/task\s*$/m)
      await tui.send(task.taskID)
      await tui.shows(new RegExp(`Baton: task ${task.taskID}[\\s\\S]*${TASK.title} · open`))
      await eventually("the request", () => turnsOf(task).find((text) => text.includes(TASK.specification)))
      await tui.shows("Noted.")
      tui.type("/task ")
      await tui.shows(/┃ +\/task\s*$/m)
      tui.press("Enter")
      await tui.shows(`${task.taskID}, ${TASK.title} (`)
      await tui.send(`${CORRECTION} COMPACT-NOW`)
      const learned = tui.shows(/Baton: learned[\s\S]*“No, use tabs/)
      await Promise.all([learned, tui.shows("Baton: compaction 1 recorded")])
    } finally {
      await tui.stop()
    }
  })
})
