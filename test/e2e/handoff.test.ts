import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { handoffScript } from "../support/handoff-script.ts"
import { BOTH_ENDS } from "../support/opencode-binary.ts"
import { eventually, startServer, type TestServer } from "../support/opencode-server.ts"
import type { ModelRequest } from "../support/scripted-model.ts"
import { BRIEF, closeTaskProjects, openTaskProject, type TaskProject } from "../support/task-project.ts"

closeTaskProjects()

const FILES = ["src/parser.ts", "src/a file.ts", "missing.ts", ".env", "README.md"]
const HANDED_OVER = { prompt: "Finish the CRLF work in src/parser.ts.", files: FILES }

const openProject = async (binary: (typeof BOTH_ENDS)[number], script = handoffScript(HANDED_OVER)) => {
  const task = await openTaskProject(binary, script)
  task.project.write("src/parser.ts", "export const parse = () => 1\n")
  task.project.write("src/a file.ts", "first\nsecond\n")
  task.project.write(".env", "SECRET=hidden\n")
  return task
}

const sessionsIn = (text: string): string[] => [...new Set(text.match(/\bses_[A-Za-z0-9]{20,}/g) ?? [])]

const speakWith = (client: TestServer["client"]) => ({
  create: async () => (await client.session.create({ body: {} })).data?.id ?? "",
  say: (id: string, text: string) => client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text }] } }),
})

/** What the model is told of a tool's arguments. */
const parametersOf = (request: ModelRequest | undefined, name: string): unknown =>
  request?.body.tools?.find((tool) => tool.function.name === name)?.function.parameters

/** A session on the task, its handoff in `opencode run`, and the session that was made. */
const handOver = async (
  task: TaskProject,
  goal = "Make the tests pass on Windows",
): Promise<{ from: string; to: string }> => {
  const first = await task.run(task.message)
  expect(first.exitCode, first.stderr).toBe(0)
  const [from = ""] = sessionsIn(task.project.log())
  const second = await task.run(goal, { args: ["--session", from, "--command", "handoff"] })
  expect(second.exitCode, second.stderr).toBe(0)
  const answer = task.model.received("turn").at(-1)?.conversation ?? ""
  const to = /Handoff stored in the new session (ses_\w+)/.exec(answer)?.[1]
  if (to === undefined) throw new Error(`no session was made: ${answer.slice(-1_500)}`)
  return { from, to }
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(
      ["handoff.A1", "handoff.A2", "handoff.B1", "handoff.B3", "handoff.B4", "handoff.B5", "handoff.C4", "handoff.E1"],
      "in run, the new session has draft and files before its first turn, and reads the old one",
    ),
    async () => {
      const task = await openProject(binary)
      const { from, to } = await handOver(task)
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
      const task = await openProject(binary)
      await handOver(task)
      const answer = task.model.received("turn").at(-1)?.conversation ?? ""
      expect(answer).toContain('- \\"missing.ts\\": there is no such file'.replaceAll("\\", ""))
      expect(answer).toContain('- ".env": it may hold secrets')
    },
  )

  test(
    promised(["handoff.E1", "handoff.C4", "handoff.C5"], "in serve, drafts are injected once, and a quoted one is not"),
    async () => {
      const task = await openProject(binary)
      const server = await startServer(binary, task.project)
      try {
        const { client } = server
        const { create, say } = speakWith(client)
        const from = await create()
        await say(from, task.message)
        await client.session.command({ path: { id: from }, body: { command: "handoff", arguments: "" } })
        const answer = task.model.received("turn").at(-1)?.conversation ?? ""
        const to = /Handoff stored in the new session (ses_\w+)/.exec(answer)?.[1] ?? ""
        const stored = (await client.session.messages({ path: { id: to } })).data ?? []
        expect(stored).toHaveLength(1)
        const draft = stored[0]?.parts.find((part) => part.type === "text")?.text ?? ""
        const headers = (parts: (typeof stored)[number]["parts"]) =>
          parts.filter((part) => part.type === "text" && part.text.startsWith("Called the Read tool")).length
        expect(headers(stored[0]?.parts ?? [])).toBe(3)
        expect((await client.session.get({ path: { id: to } })).data?.title).toMatch(/^Handoff: /)

        // A later message that quotes the draft, and another session's first message that quotes it.
        await say(to, `Look at this:\n\n${draft}`)
        const other = await create()
        await say(other, `What does this mean?\n\n## User\n${draft}`)
        for (const id of [to, other]) {
          const messages = (await client.session.messages({ path: { id } })).data ?? []
          const last = messages.findLast(({ info }) => info.role === "user")
          expect(headers(last?.parts ?? []), id).toBe(0)
        }

        // Taken back and sent again: the files come with the message that stays.
        const resent = await create()
        const first = (await say(resent, draft)).data
        expect(first?.info.error).toBeUndefined()
        const before = (await client.session.messages({ path: { id: resent } })).data ?? []
        expect(headers(before[0]?.parts ?? [])).toBe(3)
        await client.session.revert({ path: { id: resent }, body: { messageID: before[0]?.info.id ?? "" } })
        await say(resent, draft.replace("Finish", "Complete"))
        const after = (await client.session.messages({ path: { id: resent } })).data ?? []
        const users = after.filter(({ info }) => info.role === "user")
        expect(users.map(({ parts }) => headers(parts))).toEqual([3])

        // A fork takes the files along and gets no second set.
        const fork = (await client.session.fork({ path: { id: resent }, body: {} })).data?.id ?? ""
        await say(fork, "Go on.")
        const forked = (await client.session.messages({ path: { id: fork } })).data ?? []
        expect(forked.reduce((sum, { parts }) => sum + headers(parts), 0)).toBe(3)
        await client.session.delete({ path: { id: fork } })
      } finally {
        await server.stop()
      }
    },
  )

  test(promised("handoff.A1", "a user's own command keeps its name, and Baton's gets another"), async () => {
    const task = await openProject(binary)
    task.project.write(".opencode/command/handoff.md", "---\ndescription: mine\n---\nMine: $ARGUMENTS\n")
    const server = await startServer(binary, task.project)
    try {
      const commands = (await server.client.command.list()).data ?? []
      const templates = Object.fromEntries(commands.map(({ name, template }) => [name, template]))
      expect(templates.handoff).toContain("Mine:")
      expect(templates["baton-handoff"]).toContain("Hand this work over")
      const comment = "<!-- baton:handoff-command -->"
      task.project.write("prompts/handoff-command.md", `${comment}\nEDITED $ARGUMENTS handoff_session\n`)
      const edited = (await server.client.command.list()).data ?? []
      expect(edited.find(({ name }) => name === "baton-handoff")?.template).toMatch(/^EDITED/)
      await eventually("the log line", () =>
        task.project.batonLog().find((line) => line.includes("/baton-handoff is registered instead")),
      )
    } finally {
      await server.stop()
    }
  })

  test(
    promised(["handoff.D1", "handoff.D2", "handoff.D3"], "read_session says plainly what it cannot read, and searches"),
    async () => {
      const reads: Record<string, unknown>[] = []
      const task = await openProject(binary, (request) => {
        const last = request.conversation.slice(request.conversation.lastIndexOf("[user]"))
        const read = reads[0]
        if (last.includes("read_session") && read && !last.includes("[tool]"))
          return { tool: "read_session", input: read }
        return { text: "The secret word is PLATYPUS." }
      })
      const server = await startServer(binary, task.project)
      try {
        const { client } = server
        const { create, say } = speakWith(client)
        const first = await create()
        await say(first, "What is the word?")
        const second = await create()
        const read = async (input: Record<string, unknown>): Promise<string> => {
          reads[0] = input
          await say(second, "Please use read_session.")
          const messages = (await client.session.messages({ path: { id: second } })).data ?? []
          const part = messages.flatMap(({ parts }) => parts).findLast(({ type }) => type === "tool")
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
      } finally {
        await server.stop()
      }
    },
  )
})
