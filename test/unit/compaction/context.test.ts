import { describe, expect, test } from "vitest"
import { createBudget } from "../../../.opencode/baton/compaction/budget.ts"
import { createPreparations, PREPARATION_MS } from "../../../.opencode/baton/compaction/compaction.ts"
import type { ContextDeps } from "../../../.opencode/baton/compaction/context.ts"
import { DEFAULT_HANDOFF_PROMPT, loadContext, readInstructions } from "../../../.opencode/baton/compaction/context.ts"
import { EMPTY_STATE } from "../../../.opencode/baton/compaction/session-state.ts"
import { renderNote } from "../../../.opencode/baton/compaction/texts.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { builtInProtocol } from "../../../.opencode/baton/task/prompts.ts"
import { promised } from "../../requirements.ts"
import { BINDING, createFakeSessions, createRecordedLog } from "../../support/unit.ts"

const { sessionID } = BINDING

const setUp = (read: ContextDeps["prompts"]["read"]) => {
  const log = createRecordedLog()
  const told: string[] = []
  const deps: ContextDeps = {
    sessions: createFakeSessions(new Map()),
    ledger: { readTask: async () => ({ kind: "unknown" }) },
    prompts: { read },
    claimsMode: async () => "shared",
    isIdleOn: async () => false,
    root: "/nowhere",
    notices: ({ title, message }) => void told.push(`${title}: ${message}`),
    log,
  }
  const logged = (part: string) => log.lines.filter(({ message }) => message.includes(part))
  return { deps, logged, told }
}

test(promised("claim.B2", "the note after a compaction tells that another session works on the task"), async () => {
  const noteFor = async (session: string): Promise<string> => {
    const { deps } = setUp((name) => ({ kind: "foreign", path: `prompts/${name}.md` }))
    const claim = { session, isOwn: false, summary: untrusted("session ses_2 on this machine") }
    const about = { title: untrusted("T"), status: untrusted("open"), description: untrusted(""), logs: [], labels: [] }
    const task = { id: BINDING.taskID, ...about }
    const ledger = { readTask: async () => ({ kind: "found", task: { ...task, claim } }) as const }
    const { identity, facts, logs } = await loadContext({ ...deps, ledger }, BINDING, EMPTY_STATE)
    const verdict = { saysLess: false }
    return renderNote({ identity, facts, logs, number: 1, summary: "S.", verdict, budget: createBudget(200_000) })
  }
  expect(await noteFor("ses_2")).toContain('the task was claimed by "session ses_2 on this machine": look at what')
  expect(await noteFor(sessionID)).not.toContain("claimed by")
})

describe("the context of a compaction", () => {
  test(
    promised(["compaction.C2", "faults.F2", "notices.A1"], "the context of a compaction warns of unusable prompts"),
    async () => {
      const reason = "it is empty"
      const { deps, logged, told } = setUp((name) => ({ kind: "unusable", path: `prompts/${name}.md`, reason }))
      expect(readInstructions(deps, sessionID)).toBe(DEFAULT_HANDOFF_PROMPT)
      await loadContext(deps, BINDING, EMPTY_STATE)
      expect(logged("prompt unusable")).toMatchObject([
        { level: "warn", extra: { path: "prompts/handoff.md", reason } },
        { level: "warn", extra: { path: "prompts/worker.md", reason } },
      ])
      expect(told).toEqual([
        "built-in prompt used: prompts/handoff.md: it is empty",
        "built-in prompt used: prompts/worker.md: it is empty",
      ])
    },
  )

  test(
    promised("start.A4", "the context of a compaction names the project's own prompts in one line each, and uses none"),
    async () => {
      const { deps, logged } = setUp((name) => ({ kind: "foreign", path: `prompts/${name}.md` }))
      expect(readInstructions(deps, sessionID)).toBe(DEFAULT_HANDOFF_PROMPT)
      const { identity } = await loadContext(deps, BINDING, EMPTY_STATE)
      expect(identity.protocol).toBe(builtInProtocol("worker", BINDING))
      const info = (name: string, used: string) =>
        `info prompts/${name}.md is the project's own (no contract comment): built-in ${used} used`
      const said = logged("the project's own").map(({ level, message }) => `${level} ${message}`)
      expect(said).toEqual([info("handoff", "text"), info("worker", "protocol")])
    },
  )
})

/** Preparations of a session whose prompt has another wording at each reading. */
const prepare = ({ hasTask = true, failures = 0 } = {}) => {
  let reads = 0
  let nowMs = 0
  const { deps, logged } = setUp(() => ({ kind: "text", path: "prompts/handoff.md", text: `Wording ${reads}.` }))
  const preparations = createPreparations({
    ...deps,
    tasks: { find: async () => (hasTask ? BINDING : undefined) },
    sessionStates: {
      load: async () => {
        reads++
        if (reads <= failures) throw new Error("the disk is gone")
        return EMPTY_STATE
      },
    },
    search: () => undefined,
    clock: () => nowMs,
  })
  const pass = (ms: number): void => {
    nowMs += ms
  }
  preparations.begin(sessionID)
  return { take: () => preparations.take(sessionID), reads: () => reads, pass, logged }
}

describe("what is prepared before the compacting hook is called", () => {
  test(
    promised(
      ["speed.G2", "compaction.C2"],
      "what is prepared before the compacting hook is called is what the hook gets, and once: then it is read anew",
    ),
    async () => {
      const { take, reads } = prepare()
      expect(await take()).toMatchObject({ binding: BINDING, instructions: "Wording 1." })
      expect(reads()).toBe(1)
      expect(await take()).toMatchObject({ instructions: "Wording 2." })
    },
  )

  test(
    promised(
      "compaction.C2",
      "what is prepared before the compacting hook is called is read anew when the compaction it was for did not come",
    ),
    async () => {
      const { take, pass } = prepare()
      pass(PREPARATION_MS)
      expect(await take()).toMatchObject({ instructions: "Wording 2." })
    },
  )

  test(
    promised("compaction.C9", "what could not be prepared is read by the compacting hook itself, and a line says so"),
    async () => {
      const { take, logged } = prepare({ failures: 1 })
      expect(await take()).toMatchObject({ instructions: "Wording 2." })
      expect(logged("compaction not prepared: the hook reads again")).toMatchObject([{ level: "warn" }])
    },
  )

  test(promised("task.B4", "nothing is prepared for a session without a task"), async () => {
    const { take, reads } = prepare({ hasTask: false })
    expect(await take()).toBeUndefined()
    expect(reads()).toBe(0)
  })
})
