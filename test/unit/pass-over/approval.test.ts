import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { ToolContext } from "@opencode-ai/plugin"
import { describe, expect, test } from "vitest"
import type { Core } from "../../../.opencode/baton/core/core.ts"
import type { PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import type { Artifact, WorkOutput } from "../../../.opencode/baton/pass-over/contract.ts"
import { passOverError } from "../../../.opencode/baton/pass-over/errors.ts"
import {
  approveResult,
  createEditPermission,
  createPermissionWatch,
} from "../../../.opencode/baton/pass-over/result/approval.ts"
import type { PassRecord } from "../../../.opencode/baton/pass-over/store/record.ts"
import { createWriteGuard } from "../../../.opencode/baton/write-guard/guard.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { builtInPolicy, passRecord, workOutput } from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

type Ask = ToolContext["ask"]

const yes: Ask = async () => {}
const no: Ask = () => Promise.reject(new Error("rejected"))
/** The value that OpenCode 1.4 to 1.15.4 returns: an effect that is never run. */
const notRun: Ask = () => ({}) as Promise<void>

describe("what a pass changed", () => {
  type Rules = { agent?: PermissionRule[]; session?: PermissionRule[] }
  type Files = { paths?: string[]; prefix?: string }

  const mayWrite = (
    { agent = [], session = [] }: Rules,
    ask: Ask = notRun,
    { paths = ["src/a.ts", "docs/b.md"], prefix = "" }: Files = {},
  ) => {
    const build = { name: "build", description: "", prompt: "", mode: "primary", isHidden: false } as const
    const permission = createEditPermission({
      childSessions: {
        agents: async () => ({ kind: "ok", value: [{ ...build, permission: agent }] }),
        parentAndPermissions: async () => ({ kind: "ok", value: { parentID: undefined, permission: session } }),
      },
      asRuled: (path) => `${prefix}${path}`,
    })
    return permission(paths, "pass_1", { sessionID: "ses_1", agent: "build", ask })
  }
  const rule = (pattern: string, action: PermissionRule["action"]) => ({ permission: "edit", pattern, action })
  const ALL = rule("*", "allow")

  test(promised("pass-over.C3", "what a pass changed is written as OpenCode says, where it can ask"), async () => {
    expect(await mayWrite({}, yes)).toEqual({ kind: "granted" })
    const refused = { kind: "refused", reason: expect.stringContaining("rejected") }
    expect(await mayWrite({ agent: [ALL] }, no)).toEqual(refused)
  })

  test.each<[string, Rules, "granted" | "refused"]>([
    ["all is allowed", { agent: [ALL] }, "granted"],
    ["one file is to be asked for", { agent: [ALL, rule("docs/*", "ask")] }, "refused"],
    ["one file is denied to the session", { agent: [ALL], session: [rule("src/*", "deny")] }, "refused"],
    ["nothing is said of it", {}, "refused"],
  ])(
    promised("pass-over.C3", "what a pass changed is written by the rules alone, where OpenCode cannot ask: %s"),
    async (_name, rules, kind) => {
      expect((await mayWrite(rules)).kind).toBe(kind)
    },
  )

  test(
    promised("guard.A2", "what a pass changed is asked for by the name that rules have, also outside git"),
    async () => {
      const project = join(temporaryFolder(), ".projects/own")
      mkdirSync(join(project, ".opencode"), { recursive: true })
      const config: Parameters<ReturnType<typeof createWriteGuard>["protect"]>[0] = {}
      const guard = createWriteGuard({
        input: { worktree: "/", directory: project },
        projectRoot: project,
        root: project,
      } as Core)
      guard.protect(config)
      const { edit } = Object(config.agent?.build?.permission)
      const agent = [ALL, ...Object.entries<PermissionRule["action"]>(edit).map(([at, action]) => rule(at, action))]
      const prefix = `${project.slice(1)}/`
      const asked: string[] = []
      const ask: Ask = async ({ patterns }) => void asked.push(...patterns)
      const decide = async (path: string, by?: Ask) =>
        (await mayWrite({ agent }, by, { paths: ["src/a.ts", path], prefix })).kind
      for (const path of [".opencode/tool/x.ts", ".opencode/command/x.md", ".opencode/baton.json"]) {
        expect(await decide(path), path).toBe("refused")
        expect(await decide(path, ask), path).toBe("granted")
        expect(asked.splice(0)).toEqual([`${prefix}src/a.ts`, prefix + path])
      }
      expect(await decide(".opencode/plugins/x.ts", ask)).toBe("refused")
      expect(await decide("src/b.ts")).toBe("granted")
      // The folder above the project has a dot in front; its ordinary files do not run for that.
      const deniesOne = [...agent, rule(`${prefix}src/a.ts`, "deny")]
      expect(await mayWrite({ agent: deniesOne }, ask, { prefix })).toEqual({ kind: "granted" })
    },
  )
})

test(promised("soak.B4", "questions that nobody answered go with their session, and others are not kept"), async () => {
  const refused: string[] = []
  const watch = createPermissionWatch({
    answerPermission: async (_sessionID, permissionID) => {
      refused.push(permissionID)
      return { kind: "ok", value: undefined }
    },
  })
  const question = { kind: "asked", subagent: "coder", isCritical: false } as const
  for (const sessionID of ["ses_gone", "ses_here"])
    watch.asked({ ...question, sessionID, permissionID: `per_${sessionID}`, passID: "pass_1" })
  watch.asked({ ...question, sessionID: "ses_here", permissionID: "per_other", passID: undefined })
  watch.forget("ses_gone")
  await watch.cancelPrompt(undefined as never)
  await watch.cancelPrompt("pass_1")
  expect(refused).toEqual(["per_ses_here"])
})

test(
  promised(
    "passes.A4",
    "an answer of always holds for an agent's later results, never for one with a critical finding",
  ),
  () => {
    const watch = createPermissionWatch({ answerPermission: async () => ({ kind: "ok", value: undefined }) })
    const ask = (subagent: string, isCritical: boolean, reply: string) => {
      watch.asked({ kind: "asked", sessionID: "ses_1", permissionID: "per_1", passID: "pass_1", subagent, isCritical })
      watch.answered("per_1", reply)
    }
    ask("coder", false, "once")
    ask("coder", true, "always")
    expect(watch.isAllowed("coder")).toBe(false)
    ask("coder", false, "always")
    expect([watch.isAllowed("coder"), watch.isAllowed("second")]).toEqual([true, false])
    expect([watch.wasAsked("pass_1"), watch.wasAsked("pass_1")]).toEqual([true, false])
  },
)

describe("the way back of a result", () => {
  const levels = { ...builtInPolicy().levels, auto_return: "pair" } as const
  const saying = (auto_return: boolean, change: Partial<PassRecord> = {}) =>
    passRecord({ policy: { ...builtInPolicy({ auto_return }), levels }, output: workOutput(), ...change })
  const never: Ask = () => Promise.reject(new Error("nobody was to be asked"))

  const setUp = ({ hasUser = true, isAllowed = false, wasAsked = true } = {}) => {
    const seen: { asked: Parameters<Ask>[0][]; decided: string[] } = { asked: [], decided: [] }
    const watched =
      (answer: Ask): Ask =>
      (question) => {
        seen.asked.push(question)
        return answer(question)
      }
    const approve = (record: PassRecord, answer: Ask, answerDeadlineMs = 60_000) =>
      approveResult(record, {
        ask: watched(answer),
        hasUser,
        passes: {
          approve: async (_id, by) => seen.decided.push(`released by ${by}`) > 0,
          withheld: async (_record, by) => void seen.decided.push(`withheld by ${by}`),
        },
        questions: {
          isAllowed: () => isAllowed,
          wasAsked: () => wasAsked,
          cancelPrompt: async (passID) => void seen.decided.push(`cancelled ${passID}`),
        },
        log: createRecordedLog(),
        answerDeadlineMs,
      })
    return { ...seen, approve }
  }

  const finding = (severity: "critical" | "error"): Artifact => ({
    type: "finding",
    severity,
    message: "The table is empty",
  })
  const critical: Partial<WorkOutput> = { artifacts: [finding("error"), finding("critical")] }
  const error = passOverError("E010", { message: "late", cause: "late" })

  test.each<[string, Partial<PassRecord>, boolean, boolean]>([
    ["completed work, with auto_return", {}, true, false],
    ["completed work, without auto_return", {}, false, true],
    ["a lesser finding", { output: workOutput({ artifacts: [finding("error")] }) }, true, false],
    ["a critical finding", { output: workOutput(critical) }, true, true],
    [
      "a critical finding of an agent that can change nothing",
      { output: workOutput(critical), can_change: false },
      true,
      false,
    ],
    [
      "an agent that can change nothing, where nobody wrote auto_return",
      { can_change: false, policy: builtInPolicy() },
      false,
      false,
    ],
    ["an agent that can change nothing, where auto_return is false", { can_change: false }, false, true],
    ["partial work", { output: workOutput({ ...critical, status: "partial" }) }, false, false],
    ["failed work", { output: workOutput({ status: "failed", error }) }, false, false],
    ["a time-out", { output: workOutput({ status: "timeout", error }) }, false, false],
    ["what was approved before", { released_at: "2026-01-01T10:20:30.000Z" }, false, false],
  ])(
    promised(["passes.A3", "passes.A4", "pass-over.A10", "pass-over.A6"], "%s is asked for (auto_return %j)"),
    async (_what, change, autoReturn, isAsked) => {
      const { approve, asked } = setUp()
      const { kind } = await approve(saying(autoReturn, change), never)
      expect([asked.length, kind]).toEqual(isAsked ? [1, "refused"] : [0, "approved"])
    },
  )

  test(
    promised(
      "passes.A4",
      "a result goes back after a question that says all of it, in its name and pattern, on one line",
    ),
    async () => {
      const { approve, asked } = setUp()
      const summary = {
        text: "s",
        decision: "changes_requested",
        findings: ["error: e", "critical a.ts:3: The\u001b[31m\ntable is empty"],
        recommendations: [],
      }
      const output = workOutput({ ...critical, summary })
      await approve(saying(false, { output }), yes)
      await approve(saying(false), yes)
      const [first, second] = asked
      expect(first?.patterns).toEqual([
        "audit: changes requested, 2 findings, 2 files read, 0 files changed. critical a.ts:3: The table is empty. Asked since it has a critical finding.",
      ])
      expect(first).toMatchObject({
        permission: `pass_over_result ${first?.patterns[0]}`,
        always: ["this result alone"],
      })
      expect(second).toMatchObject({
        permission:
          "pass_over_result audit: approved, 2 files read, 0 files changed. Asked since auto_return is false.",
        always: ["results of audit without a critical finding"],
      })
    },
  )

  test.each<[string, Parameters<typeof setUp>[0], Ask, string, RegExp | undefined]>([
    ["released by user", {}, yes, "approved", undefined],
    ["withheld by user", {}, no, "refused", undefined],
    ["released by policy", { wasAsked: false }, yes, "approved", undefined],
    ["withheld by policy", { wasAsked: false }, no, "refused", undefined],
    ["released by run", { hasUser: false }, never, "approved", /^No user could be asked/],
    ["released by unsupported", {}, notRun, "approved", /cannot ask/],
    ["released by silence", {}, () => new Promise(() => {}), "approved", /^No answer came/],
  ])(promised(["passes.A4", "pass-over.A6"], "a result is %s with %j"), async (decided, given, answer, kind, note) => {
    const { approve, decided: decisions } = setUp(given)
    const approval = await approve(saying(false), answer, decided.endsWith("silence") ? 5 : 60_000)
    expect(approval.kind).toBe(kind)
    expect(decisions.at(-1)).toBe(decided)
    if (decided.endsWith("silence")) expect(decisions[0]).toBe(`cancelled ${saying(false).request.pass_over_id}`)
    if (note) expect(approval).toMatchObject({ note: expect.stringMatching(note) })
  })

  test(promised("passes.A4", "a result goes back unasked after always, unless it has a critical finding"), async () => {
    const { approve, asked } = setUp({ isAllowed: true })
    expect((await approve(saying(false), never)).kind).toBe("approved")
    expect((await approve(saying(false, { output: workOutput(critical) }), never)).kind).toBe("refused")
    expect(asked).toHaveLength(1)
  })
})
