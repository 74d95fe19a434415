import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  closeTaskProjects,
  eventually,
  type ModelRequest,
  newestSessionID,
  newestWords,
  openSharedTask,
  openTaskProject,
  type SharedTask,
  type TaskProject,
} from "../../support/index.ts"
import { handedOverTo, handoffScript } from "../../support/model/handoff-script.ts"

closeTaskProjects()

const FILES = ["src/parser.ts", "src/a file.ts", "missing.ts", ".env", "README.md"]
const HANDED_OVER = { prompt: "Finish the CRLF work in src/parser.ts.", files: FILES }

const withFiles = <T extends Pick<TaskProject, "project">>(task: T): T => {
  task.project.write("src/parser.ts", "export const parse = () => 1\n")
  task.project.write("src/a file.ts", "first\nsecond\n")
  task.project.write(".env", "SECRET=hidden\n")
  return task
}

/** Runs a handoff in the shared server. @returns the new session */
const handOver = async (task: SharedTask, from: string): Promise<string> => {
  await task.client.session.command({ path: { id: from }, body: { command: "handoff", arguments: "" } })
  return handedOverTo(task)
}

const messagesOf = async ({ client }: SharedTask, id: string) =>
  (await client.session.messages({ path: { id } })).data ?? []

/** Parameters of a tool in a request to the model. */
const parametersOf = (request: ModelRequest | undefined, name: string): unknown =>
  request?.body.tools?.find((tool) => tool.function.name === name)?.function.parameters

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["handoff.A1", "handoff.A2", "handoff.B1", "handoff.B3", "handoff.B4", "handoff.B5", "handoff.C4", "handoff.E1"],
      "in run, the new session has draft and files before its first turn, and reads the old one",
    ),
    async () => {
      const task = withFiles(await openTaskProject(binary, handoffScript(HANDED_OVER)))
      const first = await task.run(task.message)
      expect(first.exitCode, first.stderr).toBe(0)
      const from = newestSessionID(task)
      const args = ["--session", from, "--command", "handoff"]
      const second = await task.run("Make the tests pass on Windows", { args })
      expect(second.exitCode, second.stderr).toBe(0)
      const to = handedOverTo(task)
      const template = task.model
        .received("turn")
        .find(({ conversation }) => conversation.includes("Hand this work over"))
      expect(template?.conversation).toContain("Make the tests pass on Windows")
      expect(parametersOf(template, "handoff_session")).toMatchObject({
        type: "object",
        properties: {
          prompt: { type: "string", description: "What the new session has to know to go on" },
          files: { type: "array", items: { type: "string" } },
        },
        required: ["prompt"],
      })

      const third = await task.run("READ-THE-OLD-ONE", { args: ["--session", to] })
      expect(third.exitCode, third.stderr).toBe(0)
      const turn = task.model.received("turn").findLast(({ conversation }) => !conversation.includes('read_session"'))
      const seen = turn?.conversation ?? ""
      const inOrder = [
        `Continuing work from session ${from}. When you lack specific information you can use read_session to get it.`,
        '@src/parser.ts @"src/a file.ts" @README.md',
        "# Worker",
        `Task: ${task.taskID}`,
        HANDED_OVER.prompt,
        "The user's first request, verbatim",
        `> ${BRIEF}`,
        "Git: branch main",
        "Not committed (",
        `Called the Read tool with the following input: {"filePath":"${join(task.project.directory, "src/parser.ts")}"}`,
        "00001| export const parse = () => 1\n(End of file - 1 lines)\n</file>",
        "src/a file.ts",
        "00002| second",
        "README.md",
        "READ-THE-OLD-ONE",
      ]
      expect(
        inOrder.map((text) => seen.indexOf(text)).every((at) => at >= 0),
        seen,
      ).toBe(true)
      const places = inOrder.map((text) => seen.lastIndexOf(text))
      expect(seen).not.toContain("SECRET")
      expect(places.slice(9)).toEqual(places.slice(9).toSorted((a, b) => a - b))
      expect(parametersOf(turn, "read_session")).toMatchObject({
        properties: {
          sessionID: { type: "string" },
          limit: { type: "number" },
          tools: { type: "string", enum: ["none", "titles", "full"] },
          any: { type: "boolean" },
        },
        required: ["sessionID"],
      })

      const last = task.model.received("turn").at(-1)?.conversation ?? ""
      expect(last).toContain(`## User\n# Worker\n\nTask: ${task.taskID}`)
      expect(last).toMatch(/\(End of session - \d+ messages\)/)

      const { logs } = await task.ledger.show(task.taskID)
      expect(logs.map(({ message }) => message)).toContain(`Handoff to ${to}: Make the tests pass on Windows`)
      const state = join(task.project.directory, ".opencode/state")
      expect(readdirSync(join(state, "handoffs"))).toHaveLength(1)
      expect(readdirSync(join(state, "tasks"))).toContain(`${to}.json`)
    },
  )

  test(
    promised(["handoff.B4", "handoff.C3"], "the answer names what was left out of the files, with the reason"),
    async () => {
      const task = withFiles(await openSharedTask(binary, handoffScript(HANDED_OVER)))
      await handOver(task, await task.say(task.message))
      const answer = task.model.received("turn").at(-1)?.conversation ?? ""
      expect(answer).toContain('- \\"missing.ts\\": there is no such file'.replaceAll("\\", ""))
      expect(answer).toContain('- ".env": it may hold secrets')
    },
  )

  test(
    promised(["handoff.E1", "handoff.C4", "handoff.C5"], "in serve, drafts are injected once, and a quoted one is not"),
    async () => {
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
      const users = (await messagesOf(task, resent)).filter(({ info }) => info.role === "user")
      expect(users.map(({ parts }) => headers(parts))).toEqual([3])

      // A fork copies the files and gets no second set.
      const fork = (await client.session.fork({ path: { id: resent }, body: {} })).data?.id ?? ""
      await say("Go on.", fork)
      const forked = await messagesOf(task, fork)
      expect(forked.reduce((sum, { parts }) => sum + headers(parts), 0)).toBe(3)
      await client.session.delete({ path: { id: fork } })
    },
  )

  test(promised("handoff.A1", "a user's own command keeps its name, and Baton's gets another"), async () => {
    const task = withFiles(await openSharedTask(binary, handoffScript(HANDED_OVER)))
    task.project.write(".opencode/command/handoff.md", "---\ndescription: mine\n---\nMine: $ARGUMENTS\n")
    const commands = (await task.client.command.list()).data ?? []
    const templates = Object.fromEntries(commands.map(({ name, template }) => [name, template]))
    expect(templates.handoff).toContain("Mine:")
    expect(templates["baton-handoff"]).toContain("Hand this work over")
    const comment = "<!-- baton:handoff-command -->"
    task.project.write("prompts/handoff-command.md", `${comment}\nEDITED $ARGUMENTS handoff_session\n`)
    const edited = (await task.client.command.list()).data ?? []
    expect(edited.find(({ name }) => name === "baton-handoff")?.template).toMatch(/^EDITED/)
    // The line names no session, so the whole log is searched.
    const isLogged = () => task.project.log().includes("/baton-handoff is registered instead") || undefined
    await eventually("the log line", isLogged)
  })

  test(
    promised(["handoff.D1", "handoff.D2", "handoff.D3"], "read_session says plainly what it cannot read, and searches"),
    async () => {
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
      expect(await read({ sessionID: "ses_000000000000000000000000" })).toBe(
        "Could not read session ses_000000000000000000000000: there is no session with this id",
      )
      expect(await read({ sessionID: "../x" })).toMatch(/^Could not read session \.\.\/x: this is no session id/)
      expect(await read({ sessionID: first })).toMatch(
        /^Could not read session ses_\w+: it is not in this session's chain/,
      )
      const any = await read({ sessionID: first, any: true })
      expect(any).toMatch(/is not in this session's chain/)
      expect(any).toContain(
        "## User\nWhat is the word?\n\n## Assistant\nThe secret word is PLATYPUS.\n\n(End of session - 2 messages)",
      )
      expect(await read({ sessionID: first, any: true, limit: 1 })).toContain(
        "(Showing 1 most recent messages. Use a higher 'limit'",
      )
      expect(await read({ sessionID: first, any: true, search: "platypus" })).toContain(
        "> The secret word is PLATYPUS.",
      )
      expect(await read({ sessionID: first, any: true, search: "/(a+)+$/" })).toContain("may never end")
    },
  )
})
