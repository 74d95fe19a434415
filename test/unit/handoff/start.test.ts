import { describe, expect, test } from "vitest"
import { findFilled } from "../../../.opencode/baton/handoff/auto-handoff.ts"
import type { HandoffRecord } from "../../../.opencode/baton/handoff/records.ts"
import * as start from "../../../.opencode/baton/handoff/start.ts"
import type { AgentInfo } from "../../../.opencode/baton/host/child-sessions.ts"
import type { Interface } from "../../../.opencode/baton/host/tui.ts"
import { promised } from "../../requirements.ts"
import { assistantMessage, createFakeSessions, type FakeSession, handoffRecord, userSays } from "../../support/unit.ts"

const { chooseTarget, countStarted, whyNotStarted } = start

const started = (from: string, to: string): HandoffRecord =>
  handoffRecord(from, [to], { started: to, draft: `Draft of ${from}` })

const session = (texts: readonly string[], parentID?: string): FakeSession => ({
  messages: texts.map((text, at) => userSays(text, `msg_${at}`)),
  ...(parentID === undefined ? {} : { info: { parentID } }),
})

/** A to G, each started by the one before. */
const CHAIN = ["A", "B", "C", "D", "E", "F", "G"]
const RECORDS = CHAIN.slice(1).map((to, at) => started(CHAIN[at] ?? "", to))

const sessionsWith = (changed: Record<string, FakeSession> = {}) =>
  createFakeSessions(
    new Map<string, FakeSession>([
      ...CHAIN.map((id, at) => [id, session(at === 0 ? ["Begin."] : [`Draft of ${CHAIN[at - 1]}`])] as const),
      ...Object.entries(changed),
    ]),
  )

const count = (id: string, changed: Record<string, FakeSession> = {}, shouldStop = () => false) =>
  countStarted({ sessions: sessionsWith(changed), shouldStop }, id, RECORDS)

describe("sessions that start one another", () => {
  test.each([
    ["A", {}, 0],
    ["B", {}, 1],
    ["F", {}, 5],
    ["F", { D: session(["Draft of C", "Use tabs."]) }, 2],
    ["F", { F: session(["Draft of E", "Go on."]) }, 0],
    ["F", { D: session(["Draft of C", " "]) }, 5],
    ["F", { D: session(["Draft of C", '<c2c event="message" from="ada">\nUse tabs.\n</c2c>']) }, 5],
    ["child", { child: session(["An agent's words."], "F") }, 5],
    ["child", { child: session(["An agent's words."], "A") }, 0],
  ])(
    promised(["handoff.F2", "words.B3"], "session %s with %j counts %i starts since the user's last message"),
    async (id, changed, expected) => {
      expect(await count(id, changed)).toBe(expected)
    },
  )

  test(promised("handoff.F2", "what cannot be read counts as without a message, and a circle ends"), async () => {
    expect(await count("F", { D: session(["Draft of C", "Use tabs."]) }, () => true)).toBe(5)
    const circle = [started("A", "B"), started("B", "A")]
    expect(await countStarted({ sessions: sessionsWith(), shouldStop: () => true }, "A", circle)).toBeGreaterThan(5)
  })

  const ruled = (name: string, permission: AgentInfo["permission"]): AgentInfo => ({
    ...{ name, description: "", prompt: "", mode: "primary", isHidden: false },
    permission: [{ permission: "*", pattern: "*", action: "allow" }, ...permission],
  })
  const RULED = [
    ruled("build", []),
    ruled("plan", [
      { permission: "edit", pattern: "*", action: "deny" },
      { permission: "plan_exit", pattern: "*", action: "allow" },
    ]),
    ruled("asking", [
      { permission: "edit", pattern: "*", action: "deny" },
      { permission: "edit", pattern: "docs/*", action: "ask" },
    ]),
  ]
  const decide = (
    sessionID: string,
    userInterface: Interface,
    requester: "user" | "model",
    parentID: string | undefined,
    change: Partial<start.Starting> = {},
  ) =>
    whyNotStarted(
      {
        sessions: sessionsWith(),
        childSessions: { agents: async () => ({ kind: "ok", value: RULED }) },
        records: async () => RECORDS,
        userInterface,
        startDeadline: () => () => false,
      },
      { sessionID, parentID, permission: [], agent: "build", targetAgent: "build", ...change },
      requester,
    )

  test.each<[string | undefined, string, "model" | "user", string | undefined]>([
    ["build", "plan", "model", undefined],
    ["plan", "build", "user", undefined],
    ["plan", "build", "model", "build may do more than plan (edit *): the user begins it with /handoff --start"],
    ["plan", "asking", "model", "asking may do more than plan (edit docs/*): the user begins it with /handoff --start"],
    ["plan", "gone", "model", "whether gone may do more than plan is not known"],
    [undefined, "plan", "model", "whether plan may do more than this agent is not known"],
  ])(
    promised("passes.A7", "an agent %s starts one of %s by the %s: %s"),
    async (agent, targetAgent, requester, reason) => {
      const answer = await decide("A", "server", requester, undefined, { agent, targetAgent })
      if (reason === undefined) expect(answer).toBeUndefined()
      else expect(answer).toContain(reason)
    },
  )

  test(
    promised("passes.A7", "what the session is denied, its new one is denied too, so that it counts for both"),
    async () => {
      const permission = [{ permission: "edit", pattern: "*", action: "deny" }] as const
      expect(
        await decide("A", "server", "model", undefined, { agent: "plan", targetAgent: "build", permission }),
      ).toBeUndefined()
    },
  )

  test.each([
    ["A", "server", "model", undefined],
    ["A", "server", "user", undefined],
    ["A", "tui", "user", undefined],
    ["E", "server", "model", undefined],
  ] as const)(
    promised("handoff.F2", "session %s on %s by the %s starts another"),
    async (id, ui, requester, parent) => {
      expect(await decide(id, ui, requester, parent)).toBeUndefined()
    },
  )

  test.each([
    ["A", "tui", "model", undefined, "in the TUI the user decides"],
    ["A", "run", "user", undefined, "`opencode run` ends with this session's turn"],
    ["A", "server", "model", "ses_parent", "this is a subagent's session"],
    ["F", "server", "model", undefined, `${start.MAX_STARTED_IN_A_ROW} sessions in a row`],
  ] as const)(
    promised("handoff.F2", "session %s on %s by the %s with the parent %s starts no other"),
    async (...row) => {
      const [id, userInterface, requester, parentID, reason] = row
      expect(await decide(id, userInterface, requester, parentID)).toContain(reason)
    },
  )
})

describe("the agent and the model of a new session", () => {
  const agent = (name: string, change: Partial<AgentInfo> = {}) =>
    ({ name, description: "", prompt: "", mode: "primary", isHidden: false, permission: [], ...change }) as const
  const OTHER = { providerID: "p", modelID: "vendor/big" }
  const [writer, explore] = [agent("writer", { mode: "all", model: OTHER }), agent("explore", { mode: "subagent" })]
  const AGENTS = [agent("build"), writer, explore, agent("title", { isHidden: true })]
  const deps = {
    childSessions: { agents: async () => ({ kind: "ok", value: AGENTS }) as const },
    models: async () => ({ kind: "ok" as const, value: [{ providerID: "p", modelID: "m" }, OTHER] }),
  }
  const WRITER_ON_M = { agent: "writer", model: "p/m" }
  const CURRENT = { agent: "plan", model: { providerID: "p", modelID: "m" } }

  test.each([
    [{}, CURRENT],
    [{ agent: "", model: " " }, CURRENT],
    [{ agent: "build" }, { ...CURRENT, agent: "build" }],
    [{ agent: "writer" }, { agent: "writer", model: OTHER }],
    [{ model: "p/vendor/big" }, { agent: "plan", model: OTHER }],
    [WRITER_ON_M, { ...CURRENT, agent: "writer" }],
  ])(promised("handoff.F2", "a new session asked for with %j begins with %j"), async (wanted, expected) => {
    expect(await chooseTarget(deps, wanted, CURRENT)).toEqual(expected)
  })

  test.each([
    [{ agent: "explore" }, 'There is no agent "explore"'],
    [{ agent: "title" }, "There are: build, writer"],
    [{ model: "m" }, 'There is no model "m"'],
    [{ model: "p/vendor/bigg" }, "the nearest of 2: p/vendor/big"],
  ])(promised("handoff.F2", "a new session asked for with %j is refused with what there is"), async (wanted, said) => {
    await expect(chooseTarget(deps, wanted, CURRENT)).rejects.toThrow(said)
  })

  test(promised("handoff.F2", "a name that cannot be checked is refused, since OpenCode takes any"), async () => {
    const models = async () => ({ kind: "failed" as const, reason: "config.providers failed" })
    await expect(chooseTarget({ ...deps, models }, { model: "p/m" }, CURRENT)).rejects.toThrow("cannot be checked")
  })
})

const LIMITS = { providerID: "p", modelID: "m", context: 200_000, output: 64_000 }

const answer = (id: string, input: number, extra: Parameters<typeof assistantMessage>[1] = {}) => {
  const tokens = { input, output: 1_000, reasoning: 0, cache: { read: 9_000, write: 0 } }
  return assistantMessage("An answer.", { providerID: "p", modelID: "m", tokens, ...extra }, { id })
}

const USER = userSays("Begin.", "msg_0")
const find = (messages: Parameters<typeof findFilled>[0], at = 0.8, models = [LIMITS]) =>
  findFilled(messages, models, at)

describe("the answer that filled the context", () => {
  test(
    promised("handoff.F3", "the answer that filled the context is the first that reaches the share, whatever follows"),
    () => {
      const messages = [USER, answer("msg_1", 149_500), answer("msg_2", 150_000), answer("msg_3", 190_000)]
      expect(find(messages)).toEqual({ index: 2, share: 0.8 })
      expect(find(messages.slice(0, 2))).toBeUndefined()
      expect(find(messages, 0.5)).toMatchObject({ index: 1 })
    },
  )

  test(
    promised(
      "handoff.F3",
      "the answer that filled the context comes before OpenCode compacts, whatever limits answer or input",
    ),
    () => {
      // It compacts at 168,000: the share of 0.95 is never reached.
      expect(find([USER, answer("msg_1", 149_500)], 0.95)).toBeUndefined()
      expect(find([USER, answer("msg_1", 149_600)], 0.95)).toMatchObject({ index: 1 })
      const models = [{ ...LIMITS, input: 150_000 }]
      expect(find([USER, answer("msg_1", 113_400)], 0.8, models)).toBeUndefined()
      expect(find([USER, answer("msg_1", 113_600)], 0.8, models)).toMatchObject({ index: 1 })
    },
  )

  test(
    promised(
      "handoff.F3",
      "the answer that filled the context is none before the newest compaction, nor where the model's limit is unknown",
    ),
    () => {
      const summary = answer("msg_5", 190_000, { summary: true, finish: "stop" })
      expect(find([USER, summary, answer("msg_3", 160_000), answer("msg_6", 20_000)])).toBeUndefined()
      expect(find([USER, summary, answer("msg_3", 160_000), answer("msg_6", 160_000)])).toMatchObject({ index: 3 })
      expect(find([USER, answer("msg_1", 190_000)], 0.8, [])).toBeUndefined()
      const { context: _, ...unknown } = LIMITS
      expect(findFilled([USER, answer("msg_1", 190_000)], [unknown], 0.8)).toBeUndefined()
    },
  )
})
