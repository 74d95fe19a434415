import type { ToolContext } from "@opencode-ai/plugin"
import { describe, expect, test } from "vitest"
import type { PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import type { Artifact, WorkOutput } from "../../../.opencode/baton/pass-over/contract.ts"
import {
  approveResult,
  createEditPermission,
  createPermissionWatch,
} from "../../../.opencode/baton/pass-over/result/approval.ts"
import { promised } from "../../requirements.ts"
import { builtInPolicy, passRecord, workOutput } from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

type Ask = ToolContext["ask"]

const yes: Ask = async () => {}
const no: Ask = () => Promise.reject(new Error("rejected"))
/** The value that OpenCode 1.4 to 1.15.4 returns: an effect that is never run. */
const notRun: Ask = () => ({}) as Promise<void>

describe("what a pass changed is written", () => {
  type Rules = { agent?: PermissionRule[]; session?: PermissionRule[] }

  const mayWrite = ({ agent = [], session = [] }: Rules, ask: Ask = notRun) => {
    const build = { name: "build", description: "", prompt: "", mode: "primary", isHidden: false } as const
    const permission = createEditPermission({
      childSessions: {
        agents: async () => ({ kind: "ok", value: [{ ...build, permission: agent }] }),
        parentAndPermissions: async () => ({ kind: "ok", value: { parentID: undefined, permission: session } }),
      },
    })
    return permission(["src/a.ts", "docs/b.md"], "pass_1", { sessionID: "ses_1", agent: "build", ask })
  }
  const rule = (pattern: string, action: PermissionRule["action"]) => ({ permission: "edit", pattern, action })
  const ALL = rule("*", "allow")

  test(promised("pass-over.C3", "as OpenCode says, where it can ask"), async () => {
    expect(await mayWrite({}, yes)).toEqual({ kind: "granted" })
    const refused = { kind: "refused", reason: expect.stringContaining("rejected") }
    expect(await mayWrite({ agent: [ALL] }, no)).toEqual(refused)
  })

  test.each<[string, Rules, "granted" | "refused"]>([
    ["all is allowed", { agent: [ALL] }, "granted"],
    ["one file is to be asked for", { agent: [ALL, rule("docs/*", "ask")] }, "refused"],
    ["one file is denied to the session", { agent: [ALL], session: [rule("src/*", "deny")] }, "refused"],
    ["nothing is said of it", {}, "refused"],
  ])(promised("pass-over.C3", "by the rules alone, where it cannot ask: %s"), async (_name, rules, kind) => {
    expect((await mayWrite(rules)).kind).toBe(kind)
  })
})

test(promised("soak.B4", "questions that nobody answered go with their session, and others are not kept"), async () => {
  const refused: string[] = []
  const watch = createPermissionWatch({
    answerPermission: async (_sessionID, permissionID) => {
      refused.push(permissionID)
      return { kind: "ok", value: undefined }
    },
  })
  for (const sessionID of ["ses_gone", "ses_here"])
    watch.asked({ kind: "asked", sessionID, permissionID: `per_${sessionID}`, passID: "pass_1" })
  watch.asked({ kind: "asked", sessionID: "ses_here", permissionID: "per_other", passID: undefined })
  watch.forget("ses_gone")
  await watch.cancelPrompt(undefined as never)
  await watch.cancelPrompt("pass_1")
  expect(refused).toEqual(["per_ses_here"])
})

describe("a result goes back", () => {
  const saying = (auto_return: boolean) => {
    const policy = builtInPolicy({ auto_return })
    return passRecord({ policy: { ...policy, levels: { ...policy.levels, auto_return: "pair" } } })
  }
  const asking = saying(false)
  const never: Ask = () => Promise.reject(new Error("nobody was to be asked"))
  const deps = { hasUser: true, recordApproval: async () => {}, cancelPrompt: async () => {}, log: createRecordedLog() }

  const critical: Artifact = { type: "finding", severity: "critical", message: "m" }
  const minor: Artifact = { type: "finding", severity: "error", message: "m" }
  test.each<[boolean, string, Partial<WorkOutput>]>([
    [true, "completed work", {}],
    [true, "a lesser finding", { artifacts: [minor] }],
    [false, "a critical finding", { artifacts: [minor, critical] }],
    [false, "partial work", { status: "partial" }],
    [false, "failed work", { status: "failed" }],
    [false, "a time-out", { status: "timeout" }],
  ])(promised(["pass-over.A10", "pass-over.A6"], "auto_return unasked: %s for %s"), async (expected, _what, change) => {
    const record = { ...saying(true), output: workOutput(change) }
    expect((await approveResult(record, { ...deps, ask: never })).kind).toBe(expected ? "approved" : "refused")
    const unasked = await approveResult(record, { ...deps, ask: never, hasUser: false })
    expect(unasked).toMatchObject({ note: expected ? undefined : expect.stringContaining("No user could be asked") })
  })

  test(promised("pass-over.A6", "when the user says so, where nobody wrote that nobody is to be asked"), async () => {
    const record = passRecord({ output: workOutput() })
    expect((await approveResult(record, { ...deps, ask: no })).kind).toBe("refused")
    expect((await approveResult(record, { ...deps, ask: yes })).kind).toBe("approved")
  })

  test(promised("pass-over.A6", "where OpenCode lets no tool ask, and says so"), async () => {
    const released = await approveResult(asking, { ...deps, ask: notRun })
    expect(released).toMatchObject({ kind: "approved", note: expect.stringContaining("cannot ask") })
  })

  test(promised("pass-over.A6", "when nobody answers in time, and the question is taken back"), async () => {
    const cancelPromptn: string[] = []
    const cancelPrompt = async (passID: string) => void cancelPromptn.push(passID)
    const silent: Ask = () => new Promise(() => {})
    const released = await approveResult(asking, { ...deps, ask: silent, cancelPrompt, answerDeadlineMs: 5 })
    expect(released).toMatchObject({ kind: "approved", note: expect.stringContaining("No answer came") })
    expect(cancelPromptn).toEqual([asking.request.pass_over_id])
  })
})
