import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { createPassSessions, type PassSession } from "../../../.opencode/baton/pass-over/child/active-passes.ts"
import { hiddenTools, judgeToolCall } from "../../../.opencode/baton/pass-over/child/tool-guard.ts"
import { readPassSignal } from "../../../.opencode/baton/pass-over/events.ts"
import { toPlace } from "../../../.opencode/baton/pass-over/place.ts"
import { promised } from "../../requirements.ts"

const pass = (extra: Partial<PassSession> = {}): PassSession => ({
  passID: "pass_1",
  limits: { can_modify_files: true, can_run_tools: true },
  place: undefined,
  hasReturned: false,
  isOver: false,
  refusals: 0,
  begun: new Set(),
  above: [],
  originatorWentOn: createDeferred(),
  stop: () => {},
  ...extra,
})

describe("a tool call in a pass", () => {
  test(promised("pass-over.C3", "is refused where the pass may not, also in a session below"), () => {
    const reader = pass({ limits: { can_modify_files: false, can_run_tools: true } })
    for (const isOwn of [true, false])
      expect(judgeToolCall(reader, { tool: "bash", args: { command: "ls" }, isOwn }).kind).toBe("refused")
    expect(judgeToolCall(reader, { tool: "read", args: {}, isOwn: true }).kind).toBe("go")
  })

  test(promised("pass-over.A2", "is refused after the return, and so is a question to nobody"), () => {
    expect(judgeToolCall(pass({ hasReturned: true }), { tool: "read", args: {}, isOwn: true }).kind).toBe("refused")
    expect(judgeToolCall(pass(), { tool: "question", args: {}, isOwn: true }).kind).toBe("refused")
  })
})

test(promised("pass-over.C3", "what holds for a session of a pass holds for those below it, and ends with it"), () => {
  const sessions = createPassSessions()
  sessions.created("ses_child", "ses_root")
  sessions.created("ses_below", "ses_child")
  const mine = pass()
  sessions.begin("ses_child", mine)
  expect(sessions.find("ses_below")).toBe(mine)
  expect(sessions.own("ses_below")).toBeUndefined()
  expect(sessions.find("ses_root")).toBeUndefined()
  sessions.end("ses_child")
  expect(sessions.find("ses_below")).toBeUndefined()
})

test(promised("pass-over.B3", "a pass within a pass works in a copy of its originator's copy"), () => {
  const own = { directory: "/p/sub", roots: ["/p"] } as const
  const outer = toPlace(own, "/p/state/1/copy", undefined)
  const inner = toPlace(own, "/p/state/2/copy", outer)
  expect(outer).toMatchObject({ directory: "/p/sub", worktree: "/p" })
  expect(inner).toMatchObject({ directory: "/p/state/1/copy/sub", worktree: "/p/state/1/copy", spellings: ["/p"] })
  expect(toPlace(own, "/p/state/1/copy", outer)).toBe(outer)
})

test(promised("pass-over.A1", "each session is offered what it can use"), () => {
  const limits = { can_modify_files: false, can_run_tools: true }
  const plain = hiddenTools({ worksOnPass: false, hasPasses: false, limits: undefined })
  expect(plain).toEqual(["pass_over_return", "pass_over_apply", "pass_over_reject", "pass_over_status"])
  expect(hiddenTools({ worksOnPass: false, hasPasses: true, limits: undefined })).toEqual(["pass_over_return"])
  const child = hiddenTools({ worksOnPass: true, hasPasses: false, limits })
  expect(child).not.toContain("pass_over_return")
  expect(child).toEqual(expect.arrayContaining(["bash", "write", "question"]))
})

test(promised("pass-over.D2", "events of both versions are read, and others are nothing"), () => {
  const read = (type: string, properties: unknown) => readPassSignal({ type, properties })
  const created = { kind: "created", sessionID: "s", parentID: "p" }
  expect(read("session.created", { info: { id: "s", parentID: "p" } })).toEqual(created)
  expect(read("session.error", { sessionID: "s", error: { name: "MessageAbortedError" } })?.kind).toBe("aborted")
  expect(read("session.error", { sessionID: "s", error: { name: "APIError" } })).toBeUndefined()
  const asked = { kind: "asked", sessionID: "s", permissionID: "per_1", passID: "pass_1" }
  expect(read("permission.asked", { id: "per_1", sessionID: "s", metadata: { pass_over_id: "pass_1" } })).toEqual(asked)
  expect(read("message.part.delta", { sessionID: "s" })).toBeUndefined()
  expect(read("session.idle", undefined)).toBeUndefined()
})
