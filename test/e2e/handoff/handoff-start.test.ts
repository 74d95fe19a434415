import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  endsOf,
  eventually,
  MODEL,
  type ModelReply,
  type ModelRequest,
  newestWords,
  occurrences,
  openSharedTask,
  openTaskProject,
  type SharedTask,
  startServer,
  testsOnce,
} from "../../support/index.ts"
import { handedOverTo, handoffScript } from "../../support/model/handoff-script.ts"
import { expectInOrder, handOver, messagesOf, turnsOf } from "../sessions.ts"

const PROMPT = "Finish the CRLF work in src/parser.ts."
const TEMPLATE = "Hand this work over"
const CORRECTION = "Use tabs,\nnever spaces. Task: is no line here."
const MARKER = "Continuing work from session"

const draftIn = async (task: SharedTask, id: string): Promise<string> => {
  const [first] = await messagesOf(task, id)
  const part = first?.parts.find(({ type }) => type === "text")
  return part?.type === "text" ? part.text : ""
}

const sendCommand = ({ client }: SharedTask, id: string, goal: string) =>
  client.session.command({ path: { id }, body: { command: "handoff", arguments: goal } })

/** The ids that tool answers give for started sessions, in order, each once. */
const startedIn = (task: Pick<SharedTask, "model">): string[] => {
  const answers = turnsOf(task).flatMap((text) => [...text.matchAll(/Handoff started: the new session (ses_\w+)/g)])
  return [...new Set(answers.map(([, id = ""]) => id))]
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  once(promised("handoff.F1", "in serve, no template is quoted; a chain keeps the user's words"), async () => {
    const task = await openSharedTask(binary, handoffScript({ prompt: PROMPT, files: [] }))
    const first = (await task.client.session.create({ body: {} })).data?.id ?? ""
    await sendCommand(task, first, "Look at the parser")
    const second = handedOverTo(task)
    const draft = await draftIn(task, second)
    expectInOrder(draft, [MARKER, "Goal, as the user gave it: `Look at the parser`", PROMPT, "## Facts gathered"])
    expect(draft).not.toContain(TEMPLATE)
    expect(draft).not.toContain("The user's")

    await task.say(CORRECTION, second)
    await sendCommand(task, second, "")
    const third = handedOverTo(task)
    await task.say("And no comments.", third)
    await sendCommand(task, third, "")
    const last = await draftIn(task, handedOverTo(task))
    const words = [
      "## The user's own words, newest first",
      "And no comments.",
      "Use tabs,\nnever spaces. Task: is no line here.",
    ]
    expectInOrder(last, [MARKER, PROMPT, ...words, "## Facts"])
    expect(occurrences(last, MARKER)).toBe(1)
    expect(last).not.toContain(TEMPLATE)
  })

  test(promised("handoff.F2", "in serve the new session works at once; --start begins it, too"), async () => {
    let wanted: Record<string, unknown> = {}
    const task = await openSharedTask(binary, (request) => {
      if (request.conversation.startsWith(`[user] ${MARKER}`)) return { text: "I go on." }
      return handoffScript({ prompt: PROMPT, files: ["README.md"], ...wanted })(request)
    })
    const begunWith = (part: string) =>
      eventually(`the new session's request with ${part}`, () => {
        const isBegun = (text: string) => text.startsWith(`[user] ${MARKER}`) && text.includes(part)
        return turnsOf(task).find(isBegun)
      })
    const permission = [{ permission: "webfetch", pattern: "*", action: "deny" as const }]
    const body = { title: "By hand", permission }
    const from = (await task.client.session.create({ body })).data?.id ?? ""
    await task.say(task.message, from)
    const answerTo = async (goal: string): Promise<string> => {
      await sendCommand(task, from, goal)
      return newestWords(task.model.received("turn").at(-1) ?? { conversation: "" })
    }
    wanted = { agent: "nobody", start: true }
    expect(await answerTo("")).toMatch(/There is no agent "nobody".*nothing was handed over\. There are: .*build/)
    wanted = { model: "scripted/modle" }
    expect(await answerTo("")).toMatch(/There is no model "scripted\/modle".*the nearest of \d+: scripted\/model/)
    wanted = { agent: "plan", start: true }
    await sendCommand(task, from, "")
    const [to = ""] = startedIn(task)
    const begun = [MARKER, `Task: ${task.taskID}`, PROMPT, "Called the Read tool", "# A project"]
    expectInOrder(await begunWith(PROMPT), begun)
    const [message, answer] = await eventually("the new session's answer", async () => {
      const all = await messagesOf(task, to)
      return all[1]?.parts.some((part) => part.type === "text") ? all : undefined
    })
    expect(message?.info).toMatchObject({ role: "user", agent: "plan", model: MODEL })
    expect(answer?.info.role).toBe("assistant")
    expect((await task.client.session.get({ path: { id: to } })).data).toMatchObject({ permission })
    expect(await task.records(1)).toContain(`Handoff to ${to}: Finish the CRLF work in src/parser.ts.`)
    wanted = {}
    await task.say("Go on.", from)
    await sendCommand(task, from, "--start Look at the parser")
    expect(startedIn(task)).toHaveLength(2)
    await begunWith("Goal, as the user gave it: `Look at the parser`")
  })

  test(
    promised("handoff.B6", "what a session is denied, a stored one that it hands over to is denied too"),
    async () => {
      const script = handoffScript({ prompt: PROMPT, files: [] })
      const task = await openSharedTask(binary, (request) => {
        const words = newestWords(request)
        if (!words.includes("FETCH-IT") || words.includes("[tool]")) return script(request)
        return { tool: "webfetch", input: { url: "http://127.0.0.1:9/", format: "text" } }
      })
      const permission = [{ permission: "webfetch", pattern: "*", action: "deny" as const }]
      const body = { title: "By hand", permission }
      const from = (await task.client.session.create({ body })).data?.id ?? ""
      await task.say(task.message, from)
      const to = await handOver(task, from)
      expect((await task.client.session.get({ path: { id: to } })).data).toMatchObject({ permission })
      await task.say("FETCH-IT", to)
      expect(newestWords(task.model.received("turn").at(-1) ?? { conversation: "" })).toMatch(
        /a rule which prevents you|unavailable tool 'webfetch'/,
      )
    },
  )

  test(
    promised("passes.A7", "an agent that reads does not start one that edits; --start of the user does"),
    async () => {
      let wanted: Record<string, unknown> = { agent: "build", start: true }
      const script = (request: ModelRequest) =>
        request.conversation.startsWith(`[user] ${MARKER}`)
          ? { text: "I go on." }
          : handoffScript({ prompt: PROMPT, files: [], ...wanted })(request)
      const task = await openSharedTask(binary, script)
      task.project.write(
        ".opencode/agent/reader.md",
        '---\ndescription: reads\nmode: primary\npermission:\n  "*": deny\n  read: allow\n  handoff_session: allow\n---\nYou read.\n',
      )
      const from = (await task.client.session.create({ body: {} })).data?.id ?? ""
      const hand = (goal: string) =>
        task.client.session.command({
          path: { id: from },
          body: { command: "handoff", arguments: goal, agent: "reader" },
        })
      await hand("")
      const answer = turnsOf(task).at(-1) ?? ""
      expect(answer).toMatch(
        /Not started: build may do more than reader \(.+\): the user begins it with \/handoff --start/,
      )
      expect(startedIn(task)).toEqual([])
      expect(turnsOf(task).some((text) => text.startsWith(`[user] ${MARKER}`))).toBe(false)
      wanted = { agent: "build" }
      await hand("--start Go on")
      expect(startedIn(task)).toHaveLength(1)
    },
  )

  once(promised("handoff.F2", "a sixth session in a row is not started without a message of the user"), async () => {
    const script = (request: ModelRequest): ModelReply => {
      const last = newestWords(request)
      if (last.includes("[tool]")) return { text: "Done." }
      if (!last.includes("handoff_session") && !last.includes(MARKER)) return { text: "Noted." }
      return { tool: "handoff_session", input: { prompt: `${PROMPT} Use handoff_session.`, start: true } }
    }
    const task = await openSharedTask(binary, script)
    const stored = () =>
      turnsOf(task).find((text) => text.includes("Not started: 5 sessions in a row were started without"))
    await task.say("Call handoff_session now.")
    await eventually("the end of the chain", stored, 60_000)
    const chain = await eventually("five answers", () => (startedIn(task).length < 5 ? undefined : startedIn(task)))
    expect(chain).toHaveLength(5)
    await task.say("Call handoff_session, I am here.", chain.at(-1))
    await eventually("a start after the user's message", () => (startedIn(task).length > 5 ? true : undefined))
  })
})

describe.each(endsOf(0))("OpenCode $version, a run attached to a server", (binary) => {
  test(
    promised("handoff.F2", "a run attached to a server hands over to a session that works on after the run has ended"),
    async () => {
      const runEnded = createDeferred<void>()
      const script = handoffScript({ prompt: PROMPT, files: [], start: true })
      const task = await openTaskProject(binary, async (request) => {
        if (!request.conversation.startsWith(`[user] ${MARKER}`)) return script(request)
        await runEnded.promise
        return { text: "I go on alone." }
      })
      const server = await startServer(binary, task.project)
      try {
        const from = (await server.client.session.create({ body: {} })).data?.id ?? ""
        const args = ["--attach", server.url, "--session", from, "--command", "handoff"]
        const run = await task.run("Go on", { args })
        expect(run.exitCode, run.stderr).toBe(0)
        const [to = ""] = startedIn(task)
        runEnded.resolve()
        await eventually("the new session's answer", async () => {
          const { data } = await server.client.session.messages({ path: { id: to } })
          return JSON.stringify(data).includes("I go on alone.") ? true : undefined
        })
      } finally {
        runEnded.resolve()
        await server.stop()
      }
    },
  )
})
