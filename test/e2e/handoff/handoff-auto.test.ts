import { describe, expect } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  eventually,
  type ModelReply,
  type ModelRequest,
  newestWords,
  occurrences,
  openSharedTask,
  testsOnce,
} from "../../support/index.ts"

const ASK = "the user wants such a session handed over"
/** Of 20,000: over four fifths, and below the 18,000 at which OpenCode compacts. */
const FILLED = 16_500

const SETTINGS = [".opencode/baton.json", '{"autoHandoff":{"at":0.8}}\n'] as const

/** Each request's texts but the system prompt, for comparing one with the beginning of the next. */
const textsOf = ({ messages }: Pick<ModelRequest, "messages">): string[] =>
  messages.filter(({ role }) => role !== "system").map((message) => JSON.stringify(message))

const NO_REQUEST = { messages: [] }

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  const once = testsOnce(binary)
  once(promised("handoff.F3", "the agent is asked once, at one place, and a new session goes on"), async () => {
    let steps = 0
    const script = (request: ModelRequest): ModelReply => {
      if (request.kind === "compaction") return { text: "A summary." }
      if (request.conversation.startsWith("[user] Continuing work from session")) return { text: "I go on." }
      if (newestWords(request).includes("STOP")) return { text: "Stopped.", promptTokens: 19_700 }
      if (++steps === 1) return bash("true")
      if (steps === 2) return bash("true", FILLED)
      if (steps === 3) return bash("git status --short", FILLED + 100)
      if (steps === 4) return { tool: "handoff_session", input: { prompt: "Go on with CRLF.", files: [], start: true } }
      return { text: "Handed over." }
    }
    const task = await openSharedTask(binary, script)
    task.project.write(...SETTINGS)
    const from = await task.say(task.message)
    const isNew = ({ conversation }: ModelRequest) => conversation.startsWith("[user] Continuing")
    const turns = task.model.received("turn").filter((request) => !isNew(request))
    expect(turns.map(({ conversation }) => occurrences(conversation, ASK))).toEqual([0, 0, 1, 1, 1])
    expect(turns[2]?.conversation).toContain("[Baton] 83 % of this session's context is used")
    // The provider's cache: the tools never change, and each request begins with the one before.
    for (const { tools } of turns) expect(tools).toContain("handoff_session")
    for (const [at, turn] of turns.slice(1).entries())
      expect(textsOf(turn).slice(0, textsOf(turns[at] ?? turn).length)).toEqual(textsOf(turns[at] ?? turn))
    expect(turns.at(-1)?.conversation).toMatch(/Handoff started: the new session ses_\w+/)
    await eventually("the new session's request", () => task.model.received("turn").find(isNew))

    // A new process finds the note at the same place; the summariser is not asked to hand over.
    await task.restart()
    await task.say("STOP", from)
    const last = task.model.received("turn").findLast((request) => newestWords(request).includes("STOP"))
    expect(occurrences(last?.conversation ?? "", ASK)).toBe(1)
    const [now, then] = [last, turns.at(-1)].map((turn) => textsOf(turn ?? NO_REQUEST).slice(0, 8))
    expect(now).toEqual(then)
    expect(now).toHaveLength(8)
    await task.say("STOP once more", from)
    const summary = await eventually("a compaction", () => task.model.received("compaction")[0])
    const after = await eventually("the turn after it", () =>
      task.model.received("turn").findLast(({ conversation }) => conversation.includes("A summary.")),
    )
    expect(summary.conversation).not.toContain(ASK)
    expect(after.conversation).not.toContain(ASK)
  })

  once(promised("handoff.F3", "a session without a task, and one without the setting, is asked nothing"), async () => {
    const script = (): ModelReply => ({ text: "Noted.", promptTokens: FILLED })
    const set = await openSharedTask(binary, script)
    set.project.write(...SETTINGS)
    await set.say("And now?", await set.say("No task here."))
    const unset = await openSharedTask(binary, script)
    await unset.say("And now?", await unset.say(unset.message))
    for (const { model } of [set, unset])
      for (const { conversation, tools } of model.received("turn")) {
        expect(conversation).not.toContain(ASK)
        expect(tools).not.toContain("handoff_session")
      }
  })
})
