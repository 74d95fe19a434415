import type { ToolContext } from "@opencode-ai/plugin"
import { describe, expect, test } from "vitest"
import type { PermissionRule } from "../../../.opencode/baton/host/child-sessions.ts"
import { askUser, createEditPermission } from "../../../.opencode/baton/pass-over/result/approval.ts"
import { promised } from "../../requirements.ts"

const QUESTION = { permission: "edit", patterns: ["src/a.ts"], always: ["*"], metadata: {} }
/** The value that OpenCode 1.4 to 1.15.4 returns: an effect that is never run. */
const notRun = () => ({}) as Promise<void>

describe("asking the user from a tool", () => {
  test(promised("pass-over.A6", "tells a yes from a no, and both from an OpenCode that asks nobody"), async () => {
    expect(await askUser(async () => {}, QUESTION)).toEqual({ kind: "granted" })
    const no = await askUser(() => Promise.reject(new Error("rejected")), QUESTION)
    expect(no).toEqual({ kind: "refused", reason: expect.stringContaining("rejected") })
    expect(await askUser(notRun, QUESTION)).toEqual({ kind: "unable" })
  })
})

describe("what a pass changed is written", () => {
  const mayWrite = (options: { agent?: PermissionRule[]; session?: PermissionRule[]; ask?: ToolContext["ask"] }) => {
    const agent = {
      name: "build",
      description: "",
      prompt: "",
      mode: "primary" as const,
      isHidden: false,
      permission: options.agent ?? [],
    }
    const permission = createEditPermission({
      childSessions: {
        agents: async () => ({ kind: "ok", value: [agent] }),
        parentAndPermissions: async () => ({
          kind: "ok",
          value: { parentID: undefined, permission: options.session ?? [] },
        }),
      },
    })
    return permission(["src/a.ts", "docs/b.md"], "pass_1", {
      sessionID: "ses_1",
      agent: "build",
      ask: options.ask ?? notRun,
    })
  }
  const rule = (pattern: string, action: PermissionRule["action"]): PermissionRule => ({
    permission: "edit",
    pattern,
    action,
  })

  test(promised("pass-over.C3", "as OpenCode says, where it can ask"), async () => {
    expect((await mayWrite({ ask: async () => {} })).kind).toBe("granted")
    const no = await mayWrite({ agent: [rule("*", "allow")], ask: () => Promise.reject(new Error("denied")) })
    expect(no).toEqual({ kind: "refused", reason: expect.stringContaining("denied") })
  })

  type Rules = { agent?: PermissionRule[]; session?: PermissionRule[] }
  const cases: [string, Rules, "granted" | "refused"][] = [
    ["all is allowed", { agent: [rule("*", "allow")] }, "granted"],
    ["one file is to be asked for", { agent: [rule("*", "allow"), rule("docs/*", "ask")] }, "refused"],
    ["one file is denied to the session", { agent: [rule("*", "allow")], session: [rule("src/*", "deny")] }, "refused"],
    ["nothing is said of it", {}, "refused"],
  ]
  test.each(cases)(
    promised("pass-over.C3", "by the rules alone, where it cannot ask: %s"),
    async (_name, rules, kind) => {
      expect((await mayWrite(rules)).kind).toBe(kind)
    },
  )
})
