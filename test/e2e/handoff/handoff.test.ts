import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  eventually,
  type ModelRequest,
  newestSessionID,
  newestWords,
  occurrences,
  openSharedTask,
  openTaskProject,
  TASK,
  type TaskProject,
  testsOnce,
} from "../../support/index.ts"
import { handedOverTo, handoffScript } from "../../support/model/handoff-script.ts"
import {
  afterDelivery,
  expectInOrder,
  forkSession,
  handOver,
  lastTurn,
  messagesOf,
  recordsOf,
  runWell,
} from "../sessions.ts"

const FILES = ["src/parser.ts", "src/a file.ts", "missing.ts", ".env", "README.md"]
const TEMPLATE = "Hand this work over"
const HANDED_OVER = { prompt: "Finish the CRLF work in src/parser.ts.", files: FILES }

const withFiles = <T extends Pick<TaskProject, "project">>(task: T): T => {
  task.project.write("src/parser.ts", "export const parse = () => 1\n")
  task.project.write("src/a file.ts", "first\nsecond\n")
  task.project.write(".env", "SECRET=hidden\n")
  return task
}

/** Parameters of a tool in a request to the model. */
const parametersOf = (request: ModelRequest | undefined, name: string): unknown =>
  request?.body.tools?.find((tool) => tool.function.name === name)?.function.parameters

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  test(promised(["handoff.E1", "handoff.A2", "handoff.B3", "handoff.B4"], "in run, the draft is whole"), async () => {
    const script = afterDelivery(() => task, handoffScript({ ...HANDED_OVER, start: true }))
    const task: TaskProject = withFiles(await openTaskProject(binary, script))
    const { taskID, model } = task
    await runWell(task, task.message)
    const from = newestSessionID(task)
    const goal = "Make the tests pass on Windows"
    await runWell(task, goal, { args: ["--session", from, "--command", "handoff"] })
    const to = handedOverTo(task)
    for (const part of [
      ...[
        '- "missing.ts": there is no such file',
        '- ".env": it may hold secrets',
        "Nothing runs in it yet.\nNot started: ",
      ],
      ...["`opencode run` ends with this session's turn", `opencode run --session ${to} "Go on."`],
    ])
      expect(lastTurn(task)).toContain(part)
    const template = model.received("turn").find(({ conversation }) => conversation.includes(TEMPLATE))
    expect(template?.conversation).toContain(goal)
    expect(parametersOf(template, "handoff_session")).toMatchObject({
      type: "object",
      properties: {
        prompt: { type: "string", description: "What the new session has to know to go on" },
        files: { type: "array", items: { type: "string" } },
      },
      required: ["prompt"],
    })

    await runWell(task, "READ-THE-OLD-ONE", { args: ["--session", to] })
    const turn = model.received("turn").findLast(({ conversation }) => !conversation.includes('read_session"'))
    const seen = turn?.conversation ?? ""
    expectInOrder(seen, [
      `Continuing work from session ${from}. When you lack specific information you can use read_session to get it.`,
      '@src/parser.ts @"src/a file.ts" @README.md',
      `# Worker\n\nTask: ${taskID}`,
      `Goal, as the user gave it: \`${goal}\``,
      HANDED_OVER.prompt,
      `## Definition of done\n${TASK.definitionOfDone}`,
      `## Specification\n${TASK.specification}`,
      ...["## The user's own words, newest first", ` Task: ${taskID}\n\n${BRIEF}`],
      ...["## Facts gathered by program", "Git: branch main", "Not committed ("],
      `Called the Read tool with the following input: {"filePath":"${join(task.project.directory, "src/parser.ts")}"}`,
      "00001| export const parse = () => 1\n(End of file - 1 lines)\n</file>",
      ...["src/a file.ts", "00002| second", "README.md", "READ-THE-OLD-ONE"],
    ])
    expect(seen).not.toMatch(/SECRET|Hand this work over/)
    // The task's own text beside the draft does not repeat the specification.
    expect(occurrences(seen, TASK.specification)).toBe(1)
    expect(parametersOf(turn, "read_session")).toMatchObject({
      properties: {
        ...{ sessionID: { type: "string" }, limit: { type: "number" }, any: { type: "boolean" } },
        tools: { type: "string", enum: ["none", "titles", "full"] },
      },
      required: ["sessionID"],
    })
    expect(lastTurn(task)).toContain(`## User\n# Worker\n\nTask: ${taskID}`)
    expect(lastTurn(task)).toMatch(/\(End of session - \d+ messages\)/)

    expect(await recordsOf(task)).toContain(`Handoff to ${to}: ${goal}`)
    const state = join(task.project.directory, ".opencode/state")
    expect(readdirSync(join(state, "handoffs"))).toHaveLength(1)
    expect(readdirSync(join(state, "tasks"))).toContain(`${to}.json`)
  })

  test(promised(["handoff.E1", "handoff.C4", "handoff.C5"], "in serve, drafts are injected once"), async () => {
    const task = withFiles(await openSharedTask(binary, handoffScript(HANDED_OVER)))
    const { client, say } = task
    const to = await handOver(task, await say(task.message))
    const stored = await messagesOf(task, to)
    expect(stored).toHaveLength(1)
    const draft = stored[0]?.parts.find((part) => part.type === "text")?.text ?? ""
    const headers = (parts: (typeof stored)[number]["parts"]) =>
      parts.filter((part) => part.type === "text" && part.text.startsWith("Called the Read tool")).length
    expect(headers(stored[0]?.parts ?? [])).toBe(3)
    expect((await client.session.get({ path: { id: to } })).data?.title).toMatch(/^Handoff: /)

    // A later message that quotes the draft, and another session's first message that quotes it.
    await say(`Look at this:\n\n${draft}`, to)
    const other = await say(`What does this mean?\n\n## User\n${draft}`)
    for (const id of [to, other]) {
      const last = (await messagesOf(task, id)).findLast(({ info }) => info.role === "user")
      expect(headers(last?.parts ?? []), id).toBe(0)
    }

    // Reverted and sent again: the files come with the message that stays.
    const resent = await say(draft)
    const before = await messagesOf(task, resent)
    expect(headers(before[0]?.parts ?? [])).toBe(3)
    await client.session.revert({ path: { id: resent }, body: { messageID: before[0]?.info.id ?? "" } })
    await say(draft.replace("Finish", "Complete"), resent)
    // Of the reverted message OpenCode may keep an empty one (1.14.41).
    const users = (await messagesOf(task, resent)).filter(({ info, parts }) => info.role === "user" && parts.length > 0)
    expect(users.map(({ parts }) => headers(parts))).toEqual([3])

    // A fork copies the files and gets no second set.
    const fork = await forkSession(task, resent)
    await say("Go on.", fork)
    const forked = await messagesOf(task, fork)
    expect(forked.reduce((sum, { parts }) => sum + headers(parts), 0)).toBe(3)
    await client.session.delete({ path: { id: fork } })
  })

  once(promised("handoff.A1", "a user's own command keeps its name, and Baton's gets another"), async () => {
    const task = withFiles(await openSharedTask(binary, handoffScript(HANDED_OVER)))
    task.project.write(".opencode/command/handoff.md", "---\ndescription: mine\n---\nMine: $ARGUMENTS\n")
    const commands = (await task.client.command.list()).data ?? []
    const templates = Object.fromEntries(commands.map(({ name, template }) => [name, template]))
    expect(templates.handoff).toContain("Mine:")
    expect(templates["baton-handoff"]).toContain(TEMPLATE)
    const comment = "<!-- baton:handoff-command -->"
    task.project.write("prompts/handoff-command.md", `${comment}\nEDITED $ARGUMENTS handoff_session\n`)
    const edited = (await task.client.command.list()).data ?? []
    expect(edited.find(({ name }) => name === "baton-handoff")?.template).toMatch(/^EDITED/)
    // The line names no session, so the whole log is searched.
    const isLogged = () => task.project.log().includes("/baton-handoff is registered instead") || undefined
    await eventually("the log line", isLogged)
  })

  once(promised("handoff.D2", "read_session says plainly what it cannot read, and searches"), async () => {
    let input: Record<string, unknown> = {}
    const task = await openSharedTask(binary, (request) => {
      const words = newestWords(request)
      if (words.includes("read_session") && !words.includes("[tool]")) return { tool: "read_session", input }
      return { text: "The secret word is PLATYPUS." }
    })
    const first = await task.say("What is the word?")
    const second = await task.say("Hello.")
    const read = async (wanted: Record<string, unknown>): Promise<string> => {
      input = wanted
      await task.say("Please use read_session.", second)
      const parts = (await messagesOf(task, second)).flatMap(({ parts }) => parts)
      const part = parts.findLast(({ type }) => type === "tool")
      return part?.type === "tool" && part.state.status === "completed" ? part.state.output : JSON.stringify(part)
    }
    const unknown = "ses_000000000000000000000000"
    const refusal = `Could not read session ${unknown}: there is no session with this id`
    expect(await read({ sessionID: unknown })).toBe(refusal)
    const beyond = /^Could not read session ses_\w+: it is not in this session's chain/
    expect(await read({ sessionID: first })).toMatch(beyond)
    const any = await read({ sessionID: first, any: true })
    expect(any).toMatch(/is not in this session's chain/)
    const told = "## User\nWhat is the word?\n\n## Assistant\nThe secret word is PLATYPUS."
    expect(any).toContain(`${told}\n\n(End of session - 2 messages)`)
    expect(await read({ sessionID: first, any: true, search: "platypus" })).toContain("> The secret word is PLATYPUS.")
    await task.say(`${"a".repeat(1_990)}!`, first)
    expect(await read({ sessionID: first, any: true, search: "/.*.*.*.*=/" })).toMatch(
      /took longer than 1000 ms|0 matches/,
    )
  })
})
