import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  ALL_LINES,
  BRIEF,
  eventually,
  linesOf,
  offers,
  openSharedTask,
  openTaskProject,
  type SharedTask,
  TASK,
  testsOnce,
} from "../../support/index.ts"
import { comparableRequests } from "../../support/model/request-size.ts"
import { collectToasts, lastTurn, turnsOf } from "../sessions.ts"

const noted = () => ({ text: "Noted." })

/** Messages in which a person names the task. */
const SPELLINGS: readonly ((id: string) => string)[] = [
  (id) => `task: ${id}`,
  (id) => `Task ${id}`,
  (id) => `**Task:** ${id}`,
  (id) => `TASK: ${id.toUpperCase()}\n${BRIEF}`,
  (id) => `Work on ${id}`,
  (id) => `Please work on task ${id}.\n\n${BRIEF}`,
  (id) => `${BRIEF}\ncontinue with ${id}`,
  (id) => `Can you continue \`${id}\`, please?`,
  (id) => `Your task is ${id}.`,
  (id) => id,
]

/** Begins a session again where a busy machine made its request go without the task, as the note then says. */
const sayInTime = async (task: SharedTask, message: string): Promise<void> => {
  await task.say(message)
  if (lastTurn(task).includes("The ledger did not answer (not within")) await sayInTime(task, message)
}

describe.each(ALL_LINES)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  once(promised("task.C1", "a task that is named as a person would name it is in the first request"), async () => {
    const task = await openSharedTask(binary, noted)
    for (const spelling of SPELLINGS) {
      const message = spelling(task.taskID)
      await sayInTime(task, message)
      const request = lastTurn(task)
      expect(request, message).toContain(`The message above names task ${task.taskID}`)
      expect(request, message).toContain(TASK.specification)
    }
  })

  once(promised("task.C1", "an unknown id, or one in a sentence, leaves requests as they are"), async () => {
    const requestsOf = async (bundle: "none" | "project"): Promise<unknown> => {
      const task = await openSharedTask(binary, noted, { bundle })
      await task.say("Work on ts-0000ab\nBe quick.")
      await task.say(`What is left to do before ${task.taskID} is done? I would rather work on ${task.taskID} later.`)
      await task.say(`Sum this up:\n\n> Work on ${task.taskID}\n\n\`\`\`\ntask: ${task.taskID}\n\`\`\``)
      if (bundle === "project") await task.logged("the ledger does not know the task that a message names")
      return comparableRequests(task.model, task.project, 3)
    }
    expect(await requestsOf("project")).toEqual(await requestsOf("none"))
  })

  test(
    promised("queue.A5", "a sentence takes a known task up, and another mention is answered once by a notice"),
    async () => {
      const task = await openSharedTask(binary, noted)
      const { taskID } = task
      await task.say("Hello.")
      const hasNotices = offers(binary, "notices")
      const toasts = hasNotices ? await collectToasts(task) : []
      const id = await task.say(`Is ${taskID} done, or does somebody work on it?`)
      await task.say(`Don't start ${taskID} before I say so.`, id)
      await task.say("Work on ts-0000ab and run the tests.", id)
      expect(lastTurn(task), "nothing to the model").not.toContain("[Baton]")
      await task.say(`Hi! Please continue ${taskID} and finish the tests before lunch.`, id)
      expect(lastTurn(task)).toContain(`The message above names task ${taskID}`)
      expect(lastTurn(task)).toContain(TASK.specification)
      if (!hasNotices) return
      const bound = `Baton: task ${taskID}: ${TASK.title} · open`
      await eventually("the task's notice", () => toasts.includes(bound) || undefined)
      expect(toasts).toEqual([`Baton: ${taskID} is mentioned: /task ${taskID} takes it up`, bound])
    },
  )

  once(
    promised("queue.A5", "a ticket of another tracker behind Task: is only words, of which a task is made"),
    async () => {
      const task = await openSharedTask(binary, noted)
      await task.say("Task: PROJ-1234 fix the login redirect of the page")
      expect(lastTurn(task)).not.toContain("[Baton]")
      task.project.write(".opencode/baton.json", JSON.stringify({ autoTask: true }))
      await task.restart()
      await task.say("Task: PROJ-1234 fix the login redirect of the page")
      expect(lastTurn(task)).toMatch(/\[Baton\] The message above is task ts-\w+/)
    },
  )

  once(promised("task.C1", "an id alone answers the question which task is meant, and no other question"), async () => {
    const task = await openSharedTask(binary, noted)
    const other = await task.ledger.addTask({ ...TASK, specification: "Tabs count as eight columns." })
    const id = await task.say("Task: ts-0000ab")
    await task.say(task.taskID, id)
    expect(lastTurn(task)).toContain(TASK.specification)
    await task.say(other, id)
    expect(lastTurn(task)).toContain(TASK.specification)
    expect(lastTurn(task)).not.toContain("Tabs count")
  })
})

describe.each(linesOf(0))("OpenCode $version", (binary) => {
  test(promised("task.C1", "opencode run takes a task as an argument, in a resumed session, too"), async () => {
    const task = await openTaskProject(binary, noted)
    const other = await task.ledger.addTask({ ...TASK, specification: "Tabs count as eight columns." })
    const result = await task.run("", { args: [`Work on ${task.taskID}`] })
    expect(result.exitCode, result.stderr).toBe(0)
    expect(turnsOf(task)[0]).toContain(TASK.specification)
    await task.run(`now continue with ${other}`, { args: ["--continue"] })
    expect(turnsOf(task)[1]).toContain("Tabs count as eight columns.")
    const bindings = join(task.project.directory, ".opencode/state/tasks")
    const stored = readdirSync(bindings).map((name) => JSON.parse(readFileSync(join(bindings, name), "utf8")))
    expect(stored.map(({ steps }) => steps.at(-1).taskID)).toEqual([other])
  })
})
