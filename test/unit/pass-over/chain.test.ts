import fc from "fast-check"
import { describe, expect, test } from "vitest"
import {
  abortTree,
  type ChainLink,
  type ChainQuestion,
  checkChain,
  readChain,
  renderChain,
} from "../../../.opencode/baton/pass-over/policy/chain.ts"
import { nearestNames } from "../../../.opencode/baton/task/parse.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"
import { createFakeSessions, type FakeSession } from "../../support/opencode/fake-sessions.ts"
import { assistantMessage, userMessage } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const AGENTS = ["alice", "audit", "scout", "inspector", "validator", "skill/review"]

const chain = (...agents: string[]): ChainLink[] => agents.map((agent, at) => ({ agent, session_id: `ses_${at + 1}` }))

const judge = (stack: readonly ChainLink[], subagent: string, change: Partial<ChainQuestion> = {}) =>
  checkChain({ stack, subagent, knownAgents: AGENTS, canReceivePasses: true, maxDepth: 3, ...change })

const codeOf = (error: ReturnType<typeof judge>): string => error?.code ?? "allowed"

describe("the chain", () => {
  test.each([
    ["a fourth delegation", "E002", chain("alice", "audit", "scout", "inspector"), "validator"],
    ["a pass to oneself", "E003", chain("alice"), "alice"],
    ["ping-pong while the first waits", "E003", chain("alice", "audit"), "alice"],
    ["a cycle over three", "E003", chain("alice", "audit", "scout"), "audit"],
    ["an unknown subagent", "E001", chain("alice"), "auditor"],
  ])(promised("pass-over.D1", "%s is refused with %s and the chain"), (_what, code, stack, subagent) => {
    const error = judge(stack, subagent)
    expect(codeOf(error)).toBe(code)
    if (["E002", "E003"].includes(code)) expect(error?.cause).toBe(renderChain(stack, subagent))
  })

  test(promised("pass-over.D1", "an agent that receives no passes gets none"), () => {
    expect(codeOf(judge(chain("alice"), "audit", { canReceivePasses: false }))).toBe("E001")
  })

  test(promised("pass-over.D1", "whatever is asked, a pass makes a chain without repeats within the depth"), () => {
    const agent = fc.constantFrom(...AGENTS)
    const stack = fc.array(agent, { minLength: 1, maxLength: 8 })
    forAll(100, [stack, agent, fc.integer({ min: 1, max: 5 })], (agents, subagent, maxDepth) => {
      const isAllowed = !agents.includes(subagent) && agents.length <= maxDepth
      expect(judge(chain(...agents), subagent, { maxDepth }) === undefined).toBe(isAllowed)
    })
  })
})

describe("an unknown name", () => {
  test.each([
    ["audti", "audit"],
    ["Scout", "scout"],
    ["review", "skill/review"],
    ["inspecter", "inspector"],
  ])(promised("pass-over.D1", "%j is told to be near %s"), (name, nearest) => {
    expect(nearestNames(name, AGENTS)[0]).toBe(nearest)
    expect(judge(chain("alice"), name)).toMatchObject({ cause: expect.stringContaining(nearest) })
  })

  test(promised("pass-over.D1", "an unknown name has no neighbours where there are none"), () => {
    const error = { code: "E001", cause: "This project has no subagents" }
    expect(judge(chain("alice"), "x", { knownAgents: [] })).toMatchObject(error)
  })
})

describe("the chain above a session", () => {
  const session = (parentID: string | undefined, ...modes: string[]): FakeSession => ({
    info: parentID === undefined ? {} : { parentID },
    messages: [userMessage([]), ...modes.map((mode) => assistantMessage("x", { mode }))],
  })
  const read = (sessions: Record<string, FakeSession>) =>
    readChain(createFakeSessions(new Map(Object.entries(sessions))), { agent: "audit", session_id: "ses_me" })

  test(
    promised(
      "pass-over.D1",
      "the chain above a session is read from the stored parents, built-in subagents among them",
    ),
    async () => {
      const chain = await read({
        ses_root: session(undefined, "build"),
        ses_task: session("ses_root", "general"),
        ses_me: session("ses_task", "whatever it says"),
      })
      const stack = [
        { agent: "build", session_id: "ses_root" },
        { agent: "general", session_id: "ses_task" },
        { agent: "audit", session_id: "ses_me" },
      ]
      expect(chain).toEqual({ kind: "chain", stack })
    },
  )

  test(
    promised("pass-over.D1", "the chain above a session leaves out the agents by which OpenCode does its own work"),
    async () => {
      const root = session(undefined, "build", "compaction")
      const chain = await read({ ses_root: root, ses_me: session("ses_root", "audit") })
      expect(chain).toMatchObject({ stack: [{ agent: "build" }, { agent: "audit" }] })
    },
  )

  test.each([
    ["leads in a circle", { ses_me: session("ses_b", "a"), ses_b: session("ses_me", "b") }],
    ["cannot be read", { ses_me: session("ses_gone", "a") }],
  ])(promised("pass-over.D1", "a chain above a session that %s is unreadable"), async (_what, sessions) => {
    expect((await read(sessions)).kind).toBe("unreadable")
  })
})

test(promised("pass-over.D2", "ending a session ends every session below it"), async () => {
  const below: Record<string, string[]> = { a: ["b", "c"], c: ["d"] }
  const aborted: string[] = []
  const sessions = {
    abort: async (id: string) => {
      aborted.push(id)
      return { kind: "ok" as const, value: undefined }
    },
    children: async (id: string) => ({ kind: "ok" as const, value: below[id] ?? [] }),
  }
  await abortTree(sessions, "a", createRecordedLog())
  expect(aborted.toSorted()).toEqual(["a", "b", "c", "d"])
})
