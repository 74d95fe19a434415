import { describe, expect, test } from "vitest"
import type { MessagePage, Result } from "../../../.opencode/baton/host/sessions.ts"
import type { Passes } from "../../../.opencode/baton/pass-over/store/passes.ts"
import { isUnfinished, nextState, type PassRecord } from "../../../.opencode/baton/pass-over/store/record.ts"
import { recoverPasses } from "../../../.opencode/baton/pass-over/store/recover.ts"
import { failed, unknownPass } from "../../../.opencode/baton/pass-over/worktree/refusal.ts"
import type { PassWorktree } from "../../../.opencode/baton/pass-over/worktree/worktree.ts"
import { promised } from "../../requirements.ts"
import { passRecord, passRequest, returnedState, workOutput } from "../../support/opencode/pass-over-values.ts"
import { assistantMessage, completedTool, toolPart } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const COPY = "/p/.opencode/state/pass-over/x/copy"

const passOf = (id: string): PassRecord =>
  passRecord({
    request: passRequest({ pass_over_id: id }),
    state: { state: "waiting_for_return" },
    child_session_id: id,
  })

type Restored = Awaited<ReturnType<PassWorktree["restore"]>>

const setUp = (ids: readonly string[]) => {
  const records = new Map(ids.map((id) => [id, passOf(id)]))
  const files = new Map<string, Restored | Error>()
  const messages = new Map<string, Result<MessagePage>>()
  const advance: Passes["advance"] = async (id, event, change = {}) => {
    const record = records.get(id)
    const step = record && nextState(record.state, event)
    if (!record || step?.kind !== "moved") throw new Error(`${id} cannot be ${event.type}`)
    const moved = { ...record, ...change, state: step.state }
    records.set(id, moved)
    return { kind: "moved", record: moved }
  }
  const noted: string[] = []
  const log = createRecordedLog()
  const recover = () =>
    recoverPasses({
      store: { listUnfinished: async () => [...records.values()].filter(isUnfinished) },
      passes: { advance },
      worktree: {
        restore: async (id) => {
          const found = files.get(id) ?? unknownPass(id)
          if (found instanceof Error) throw found
          return found
        },
        changes: async () => ({ kind: "changes", modifications: [], leftOut: [] }),
        copyOf: () => COPY,
      },
      sessions: { messages: async (id) => messages.get(id) ?? { kind: "ok", value: { messages: [] } } },
      owners: { isOwned: async () => false },
      note: async ({ request }) => void noted.push(request.pass_over_id),
      log,
      now: () => new Date(0),
    })
  const states = () => [...records.values()].map(({ state }) => state.state)
  return { recover, states, records, files, messages, noted, log }
}

describe("a pass whose process died", () => {
  test(promised("pass-over.B3", "stays open for the next start when its files cannot be stored now"), async () => {
    const { recover, states, files, noted } = setUp(["one", "two"])
    files.set("one", failed("the disk is full"))
    const told = await recover()
    expect(states()).toEqual(["waiting_for_return", "returned"])
    expect(told.map(({ request }) => request.pass_over_id)).toEqual(["two"])
    files.set("one", { kind: "restored", did: [], leftAlone: [], held: 0 })
    await recover()
    expect(states()).toEqual(["returned", "returned"])
    expect(noted).toEqual(["two", "one"])
  })

  test(promised("pass-over.B3", "does not keep the others from their end"), async () => {
    const { recover, states, files, log } = setUp(["one", "two"])
    files.set("one", new Error("damaged"))
    expect(await recover()).toHaveLength(1)
    expect(states()).toEqual(["waiting_for_return", "returned"])
    expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(1)
  })

  test(promised("pass-over.B3", "stays open when its session cannot be read, and not when that is gone"), async () => {
    const { recover, states, messages } = setUp(["one", "two"])
    messages.set("one", { kind: "failed", reason: "busy" })
    messages.set("two", { kind: "failed", reason: "no such session", missing: true })
    await recover()
    expect(states()).toEqual(["waiting_for_return", "returned"])
  })

  test(promised(["pass-over.B2", "pass-over.B3"], "in the middle of an apply has that taken back"), async () => {
    const { recover, records, files, states, log } = setUp(["one"])
    records.set("one", { ...passOf("one"), state: returnedState({ undecided: ["a"] }) })
    files.set("one", { kind: "restored", did: ["took back 1 write"], leftAlone: [], held: 1 })
    expect(await recover()).toEqual([])
    expect(states()).toEqual(["returned"])
    expect(log.lines.map(({ message }) => message)).toEqual(["an apply was cut off and is taken back"])
  })

  test(promised(["pass-over.A2", "pass-over.B3"], "has what it returned, in paths of the worktree"), async () => {
    const { recover, records, messages } = setUp(["one"])
    const message = assistantMessage("x")
    const input = { status: "completed", summary: `See ${COPY}/src/a.ts` }
    message.parts.push(
      toolPart("bash", completedTool("ls", `${COPY}/src/a.ts`)),
      toolPart("pass_over_return", completedTool("", "", input)),
    )
    messages.set("one", { kind: "ok", value: { messages: [message] } })
    await recover()
    const output = records.get("one")?.output
    expect(output?.summary.text).toBe("See src/a.ts")
    expect(output?.artifacts).toMatchObject([{ type: "tool_result", output: "src/a.ts" }])
  })
})

test(
  promised("pass-over.E4", "an asynchronous pass of which nobody is to be told is finished when it has returned"),
  () => {
    const state = returnedState()
    const request = passRequest({ async: true, return_required: false })
    expect(isUnfinished(passRecord({ request, state, output: workOutput() }))).toBe(false)
    expect(isUnfinished(passRecord({ request: passRequest({ async: true }), state }))).toBe(true)
  },
)
