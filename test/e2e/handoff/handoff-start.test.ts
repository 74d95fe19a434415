import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  closeTaskProjects,
  endsOf,
  eventually,
  MODEL,
  type ModelReply,
  type ModelRequest,
  newestSessionID,
  newestWords,
  occurrences,
  openSharedTask,
  openTaskProject,
  type SharedTask,
  startServer,
  TASK,
} from "../../support/index.ts"
import { handedOverTo, handoffScript } from "../../support/model/handoff-script.ts"

closeTaskProjects()

const PROMPT = "Finish the CRLF work in src/parser.ts."
const TEMPLATE = "Hand this work over"
const CORRECTION = "Use tabs,\nnever spaces. Task: is no line here."
const MARKER = "Continuing work from session"

const messagesOf = async ({ client }: SharedTask, id: string) =>
  (await client.session.messages({ path: { id } })).data ?? []

const draftIn = async (task: SharedTask, id: string): Promise<string> => {
  const [first] = await messagesOf(task, id)
  const part = first?.parts.find(({ type }) => type === "text")
  return part?.type === "text" ? part.text : ""
}

/** Asserts that each text is there, one behind the other. */
const expectInOrder = (text: string, parts: readonly string[]): void => {
  const places = parts.map((part) => text.indexOf(part))
  expect(
    places.every((at) => at >= 0),
    text,
  ).toBe(true)
  expect(places, text).toEqual(places.toSorted((a, b) => a - b))
}

const sendCommand = ({ client }: SharedTask, id: string, goal: string) =>
  client.session.command({ path: { id }, body: { command: "handoff", arguments: goal } })

/** The ids that tool answers give for started sessions, in order, each once. */
const startedIn = ({ model }: SharedTask): string[] => {
  const answers = model
    .received("turn")
    .flatMap(({ conversation }) => [...conversation.matchAll(/Handoff started: the new session (ses_\w+)/g)])
  return [...new Set(answers.map(([, id = ""]) => id))]
}

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(["handoff.F1", "handoff.F2"], "in run, the draft has task and corrections, nothing starts"),
    async () => {
      const script = handoffScript({ prompt: PROMPT, files: ["README.md"], start: true })
      const task = await openTaskProject(binary, script)
      expect((await task.run(task.message)).exitCode).toBe(0)
      const from = newestSessionID(task)
      expect((await task.run(CORRECTION, { args: ["--session", from] })).exitCode).toBe(0)
      const goal = "Make the tests pass on Windows"
      expect((await task.run(goal, { args: ["--session", from, "--command", "handoff"] })).exitCode).toBe(0)
      const answer = newestWords(task.model.received("turn").at(-1) ?? { conversation: "" })
      const to = handedOverTo(task)
      expect(answer).toContain("Nothing runs in it yet.\nNot started: `opencode run` ends with this session's turn")
      expect(answer).toContain(`opencode run --session ${to} "Go on."`)
      expect((await task.run("GO-ON", { args: ["--session", to] })).exitCode).toBe(0)
      const turn = task.model.received("turn").at(-1)?.conversation ?? ""
      expectInOrder(turn, [
        MARKER,
        "@README.md",
        `# Worker\n\nTask: ${task.taskID}`,
        `Goal, as the user gave it: \`${goal}\``,
        PROMPT,
        `## Definition of done\n${TASK.definitionOfDone}`,
        `## Specification\n${TASK.specification}`,
        `## The user's first request, verbatim\n> Task: ${task.taskID}\n>\n> ${BRIEF}`,
        "## The user's later messages, verbatim, oldest first\n> Use tabs,\n> never spaces. Task: is no line here.",
        "## Facts gathered by program",
        "GO-ON",
      ])
      expect(turn).not.toContain(TEMPLATE)
      // The task's own text beside the draft does not repeat the specification.
      expect(occurrences(turn, TASK.specification)).toBe(1)
    },
  )

  test(promised("handoff.F1", "in serve, no template is quoted; a chain keeps the user's words"), async () => {
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
    expectInOrder(last, [MARKER, PROMPT, "The user's later messages", "> Use tabs,", "> And no comments.", "## Facts"])
    expect(occurrences(last, MARKER)).toBe(1)
    expect(last).not.toContain(TEMPLATE)
  })

  test(promised("handoff.F2", "in serve the new session works at once with the wanted agent"), async () => {
    const task = await openSharedTask(binary, (request) => {
      if (request.conversation.startsWith(`[user] ${MARKER}`)) return { text: "I go on." }
      return handoffScript({ prompt: PROMPT, files: ["README.md"], start: true, agent: "plan" })(request)
    })
    const permission = [{ permission: "webfetch", pattern: "*", action: "deny" as const }]
    const body = { title: "By hand", permission }
    const from = (await task.client.session.create({ body })).data?.id ?? ""
    await task.say(task.message, from)
    await task.say("Please hand this over.", from)
    await sendCommand(task, from, "")
    const [to = ""] = startedIn(task)
    const request = await eventually("the new session's request", () =>
      task.model.received("turn").find(({ conversation }) => conversation.startsWith(`[user] ${MARKER}`)),
    )
    expectInOrder(request.conversation, [MARKER, `Task: ${task.taskID}`, PROMPT, "Called the Read tool", "# A project"])
    const [message, answer] = await eventually("the new session's answer", async () => {
      const all = await messagesOf(task, to)
      return all[1]?.parts.some((part) => part.type === "text") ? all : undefined
    })
    expect(message?.info).toMatchObject({ role: "user", agent: "plan", model: MODEL })
    expect(answer?.info.role).toBe("assistant")
    expect((await task.client.session.get({ path: { id: to } })).data).toMatchObject({ permission })
    const log = await task.records(1)
    expect(log).toContain(`Handoff to ${to}: Finish the CRLF work in src/parser.ts.`)
  })

  test(promised("handoff.F2", "the user's own --start begins it; unknown agents are refused"), async () => {
    let wanted: Record<string, unknown> = {}
    const task = await openSharedTask(binary, (request) => {
      if (request.conversation.startsWith(`[user] ${MARKER}`)) return { text: "I go on." }
      return handoffScript({ prompt: PROMPT, files: [], ...wanted })(request)
    })
    const from = await task.say("Hello.")
    const answerTo = async (goal: string): Promise<string> => {
      await sendCommand(task, from, goal)
      return newestWords(task.model.received("turn").at(-1) ?? { conversation: "" })
    }
    wanted = { agent: "nobody", start: true }
    expect(await answerTo("")).toMatch(/There is no agent "nobody".*nothing was handed over\. There are: .*build/)
    wanted = { model: "scripted/modle" }
    expect(await answerTo("")).toMatch(/There is no model "scripted\/modle".*the nearest of \d+: scripted\/model/)
    wanted = {}
    expect(await answerTo("--start Look at the parser")).toContain("Handoff started: the new session ses_")
    const begun = await eventually("the new session's request", () =>
      task.model.received("turn").find(({ conversation }) => conversation.startsWith(`[user] ${MARKER}`)),
    )
    expect(begun.conversation).toContain("Goal, as the user gave it: `Look at the parser`")
  })

  test(promised("handoff.F2", "a sixth session in a row is not started without a message of the user"), async () => {
    const script = (request: ModelRequest): ModelReply => {
      const last = newestWords(request)
      if (last.includes("[tool]")) return { text: "Done." }
      if (!last.includes("handoff_session") && !last.includes(MARKER)) return { text: "Noted." }
      return { tool: "handoff_session", input: { prompt: `${PROMPT} Use handoff_session.`, start: true } }
    }
    const task = await openSharedTask(binary, script)
    const stored = () =>
      task.model
        .received("turn")
        .find(({ conversation }) => conversation.includes("Not started: 5 sessions in a row were started without"))
    await task.say("Call handoff_session now.")
    await eventually("the end of the chain", stored, 60_000)
    const chain = await eventually("five answers", () => (startedIn(task).length < 5 ? undefined : startedIn(task)))
    expect(chain).toHaveLength(5)
    await task.say("Call handoff_session, I am here.", chain.at(-1))
    await eventually("a start after the user's message", () => (startedIn(task).length > 5 ? true : undefined))
  })
})

describe.each(endsOf(0))("OpenCode $version, a run attached to a server", (binary) => {
  test(promised("handoff.F2", "hands over to a session that works on after the run has ended"), async () => {
    let release = (): void => {}
    const runEnded = new Promise<void>((resolve) => {
      release = resolve
    })
    const script = handoffScript({ prompt: PROMPT, files: [], start: true })
    const task = await openTaskProject(binary, async (request) => {
      if (!request.conversation.startsWith(`[user] ${MARKER}`)) return script(request)
      await runEnded
      return { text: "I go on alone." }
    })
    const server = await startServer(binary, task.project)
    try {
      const from = (await server.client.session.create({ body: {} })).data?.id ?? ""
      const args = ["--attach", server.url, "--session", from, "--command", "handoff"]
      const run = await task.run("Go on", { args })
      expect(run.exitCode, run.stderr).toBe(0)
      const answer = task.model
        .received("turn")
        .findLast(({ conversation }) => conversation.includes("Handoff started"))
      const to = /Handoff started: the new session (ses_\w+)/.exec(answer?.conversation ?? "")?.[1] ?? ""
      release()
      await eventually("the new session's answer", async () => {
        const { data } = await server.client.session.messages({ path: { id: to } })
        return JSON.stringify(data).includes("I go on alone.") ? true : undefined
      })
    } finally {
      release()
      await server.stop()
    }
  })
})
