import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { eventually, occurrences, TASK } from "../../support/index.ts"
import { openServer2, openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

const shell = (command: string) => ({ tool: "shell", input: { command, description: "A step" } })

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test(promised("v2.B4", "/task takes up a task, and the next request holds it"), async () => {
    const task = await openTask2(() => ({ text: "Understood." }))
    await using server = await openServer2(task.project)
    const id = await server.say("hello")
    expect(task.model.received("turn").at(-1)?.conversation).not.toContain("[Baton]")
    await server.command(id, "task", task.taskID)
    const answered = await eventually("the command's message", () => task.model.received("turn")[1])
    expect(answered.conversation).toContain(TASK.title)
    await server.say("go on", id)
    expect(task.model.received("turn").at(-1)?.conversation).toContain(TASK.definitionOfDone)
  })

  test(promised("v2.B4", "the answer to /task is a lasting line, for which no model is asked"), async () => {
    const task = await openTask2(() => ({ text: "Understood." }))
    await using server = await openServer2(task.project)
    const id = await server.say(task.message)
    const asked = task.model.received("turn").length
    await server.command(id, "task", "")
    await server.say("go on", id)
    // The message's own requests, and none for the answer before it.
    expect(task.model.received("turn")).toHaveLength(asked + 1)
    const { data } = await server.api("GET", `/session/${id}/message`)
    expect(JSON.stringify(data)).toContain(`"description":"/task\\nThis session's task: ${task.taskID}`)
    const { conversation = "" } = task.model.received("turn").at(-1) ?? {}
    expect(conversation).toContain("The user typed /task, and Baton answered:")
    const words = task.project.read(`.opencode/state/tasks/${id}.json`)
    expect(words).toContain("go on")
    expect(words, "it is no word of the user's").not.toContain("Baton answered")
  })

  test(promised("v2.B4", "an agent without a shell gets the tools in its place, another does not"), async () => {
    const agent = { quiet: { mode: "primary", description: "Without a shell", permission: { bash: "deny" } } }
    const task = await openTask2(
      ({ index, tools }) =>
        index === 1 && tools.includes("task_show") ? { tool: "task_show", input: {} } : { text: "Done." },
      { config: { agent } },
    )
    await task.runWell(task.message)
    await task.runWell(task.message, "--agent", "quiet")
    const [usual, quiet, shown] = task.model.received("turn")
    const own = ["task_log", "task_show", "learned", "forget"]
    expect(own.filter((name) => usual?.tools.includes(name))).toEqual([])
    expect(quiet?.tools).toEqual(expect.arrayContaining(["task_log", "task_show"]))
    expect(shown?.conversation).toContain(TASK.specification)
  })

  test(promised("v2.B4", "the agent's shell has prog, whose log line is the session's own"), async () => {
    const task = await openTask2(({ index, conversation }) => {
      const id = /ts-[0-9a-f]+/.exec(conversation)?.[0] ?? ""
      return index === 0 ? shell(`prog log ${id} "Checked the lexer."`) : { text: "Done." }
    })
    await task.runWell(task.message)
    expect(await task.ledger.messages(task.taskID)).toEqual(["Checked the lexer."])
  })

  test(promised("v2.B5", "write and edit are kept from Baton's own files, by any name of the path"), async () => {
    const refused = [
      { tool: "write", input: { path: ".opencode/plugins/handoff.ts", content: "" } },
      { tool: "write", input: { path: "./x/../.opencode/baton/core/core.ts", content: "" } },
    ]
    const task = await openTask2(({ index }) => {
      const step = refused[index]
      return step ?? (index === 2 ? { tool: "write", input: { path: "own.txt", content: "x" } } : { text: "Done." })
    })
    const before = task.project.read(".opencode/plugins/handoff.ts")
    await task.runWell(task.message)
    expect(task.project.read(".opencode/plugins/handoff.ts")).toBe(before)
    expect(task.project.read(".opencode/baton/core/core.ts")).not.toBe("")
    expect(task.project.read("own.txt")).toBe("x")
    const last = task.model.received("turn").at(-1)?.conversation ?? ""
    expect(last.match(/one of Baton's own files/g)).toHaveLength(2)
  })

  test(promised("v2.B6", "a correction is learned and given to the next session"), async () => {
    const task = await openTask2(() => ({ text: "Understood." }))
    await task.runWell("Never use semicolons in this project. We decided that for all TypeScript files.")
    await task.runWell("Please write the TypeScript file for the parser, in the style of this project.")
    expect(task.model.received("turn").at(-1)?.conversation).toMatch(/baton-learned[\s\S]*semicolons/)
  })

  const AUTO = { files: { ".opencode/baton.json": JSON.stringify({ autoTask: true }) } }
  const ORDER = "Teach the parser to read files with a byte order mark, and keep the tests green."

  test(
    promised("v2.B1", "with autoTask the first message becomes the session's task, in run and in serve"),
    async () => {
      const task = await openTask2(() => ({ text: "Understood." }), AUTO)
      await task.runWell(ORDER)
      await using server = await openServer2(task.project)
      const id = await server.say(ORDER)
      await server.say("And another thing: the same for the lexer, please, with tests.", id)
      const named = task.model
        .received("turn")
        .map(({ conversation }) => /Task: (ts-[0-9a-f]+)/.exec(conversation)?.[1])
      expect(named).toEqual([expect.any(String), expect.any(String), named[1]])
      expect(named[0]).not.toBe(named[1])
    },
  )

  test(promised("v2.A2", "of two copies of the bundle the project's serves, alone"), async () => {
    const task = await openTask2(() => ({ text: "Understood." }), { bundle: "project-and-global" })
    await using server = await openServer2(task.project)
    const id = await server.say(task.message)
    await server.command(id, "task", "")
    await server.say("go on", id)
    const [turn, next] = task.model.received("turn").map(({ conversation }) => conversation)
    expect(occurrences(turn ?? "", "[Baton] ")).toBe(1)
    expect(occurrences(next ?? "", "The user typed /task, and Baton answered:")).toBe(1)
    expect(next).not.toContain("did not carry this out")
    const own = (await server.plugins()).filter(({ id }) => id.startsWith("baton."))
    expect(own.filter(({ state }) => state.status === "failed")).toEqual([])
  })

  test(promised("v2.B1", "a subagent's request holds its parent's task"), async () => {
    const task = await openTask2(({ conversation, index }) => {
      if (conversation.includes("You are a subagent")) return { text: "The child is finished." }
      if (index > 0) return { text: "Done." }
      return { tool: "subagent", input: { agent: "general", description: "a part", prompt: "Look at the tests." } }
    })
    await task.runWell(task.message)
    const child = task.model.received("turn").find(({ conversation }) => conversation.includes("You are a subagent"))
    expect(child?.conversation).toContain(task.taskID)
    expect(child?.conversation).toContain(TASK.title)
  })
})
