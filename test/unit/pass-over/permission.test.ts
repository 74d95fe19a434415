import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { PermissionRule } from "../../../.opencode/baton/host/child-sessions.ts"
import {
  childRules,
  evaluate,
  inheritLimits,
  isReader,
  mayUseTool,
  refusedTools,
} from "../../../.opencode/baton/pass-over/child/permissions.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"

const rule = (permission: string, pattern: string, action: PermissionRule["action"]): PermissionRule => ({
  permission,
  pattern,
  action,
})

const STRICTNESS = { allow: 0, ask: 1, deny: 2 }
const LIMITS = { can_modify_files: true, can_run_tools: true }
const VALUES = ["src/a.ts", "docs/a.md", "docs/deep/b.md", "x.env", "git diff", "git push origin"]

const rules = fc.array(
  fc.record({
    permission: fc.constantFrom("*", "edit", "bash", "read", "webfetch"),
    pattern: fc.constantFrom("*", "docs/*", "*.md", "src/a.ts", "*.env", "git *", "git push*"),
    action: fc.constantFrom("allow" as const, "ask" as const, "deny" as const),
  }),
  { maxLength: 8 },
)

const COPY = { relative: ".state/copy", moved: (path: string) => path.replace("/p/", "/p/.state/copy/") }

describe("the rights of a child", () => {
  test(promised("pass-over.C3", "are never more than its originator's, nor more than its own agent's"), () => {
    const open = rule("*", "*", "allow")
    fc.assert(
      fc.property(
        rules,
        rules,
        fc.constantFrom("edit", "bash", "read", "webfetch"),
        fc.constantFrom(...VALUES),
        (given, own, permission, value) => {
          const originator = [open, ...given]
          const child = [open, ...own]
          const result = evaluate([...child, ...inheritLimits(originator, child)], permission, value)
          const least = Math.max(
            STRICTNESS[evaluate(originator, permission, value)],
            STRICTNESS[evaluate(child, permission, value)],
          )
          expect(STRICTNESS[result]).toBeGreaterThanOrEqual(least)
        },
      ),
      { numRuns: runs(5_000) },
    )
  })

  test(promised("pass-over.C3", "stay what its agent has where the originator may do everything"), () => {
    const child = [rule("*", "*", "allow"), rule("bash", "*", "deny"), rule("bash", "git diff*", "allow")]
    const originator = [rule("*", "*", "allow"), rule("external_directory", "*", "ask")]
    const all = [...child, ...childRules({ limits: LIMITS, child, originator, copy: undefined })]
    expect(evaluate(all, "bash", "git diff --stat")).toBe("allow")
    expect(evaluate(all, "bash", "make")).toBe("deny")
    expect(evaluate(all, "question", "x")).toBe("deny")
  })

  test(promised("pass-over.C3", "hold for files in the copy as they do for those of the worktree"), () => {
    const child = [rule("*", "*", "allow"), rule("edit", "*", "deny"), rule("edit", "docs/*", "allow")]
    const originator = [rule("*", "*", "allow"), rule("edit", "docs/frozen/*", "deny")]
    const all = [...child, ...childRules({ limits: LIMITS, child, originator, copy: COPY })]
    expect(evaluate(all, "edit", ".state/copy/docs/a.md")).toBe("allow")
    expect(evaluate(all, "edit", ".state/copy/src/a.ts")).toBe("deny")
    expect(evaluate(all, "edit", ".state/copy/docs/frozen/a.md")).toBe("deny")
  })

  test(promised("pass-over.C3", "to read hold in the copy, by relative and by absolute paths"), () => {
    const child = [rule("*", "*", "allow"), rule("read", "secret/*", "deny"), rule("read", "/p/private/*", "deny")]
    for (const can_run_tools of [true, false]) {
      const limits = { can_modify_files: can_run_tools, can_run_tools }
      const all = [...child, ...childRules({ limits, child, originator: [], copy: COPY })]
      expect(evaluate(all, "read", ".state/copy/src/a.ts")).toBe("allow")
      expect(evaluate(all, "read", ".state/copy/secret/key")).toBe("deny")
      expect(evaluate(all, "read", "/p/.state/copy/private/key")).toBe("deny")
    }
  })

  test(promised("pass-over.C3", "to no file at all are known by the agent's rules"), () => {
    const audit = [rule("*", "*", "allow"), rule("*", "*", "deny"), rule("read", "*", "allow")]
    expect(isReader(audit)).toBe(true)
    expect(isReader([...audit, rule("bash", "git diff*", "allow")])).toBe(false)
    expect(isReader([rule("*", "*", "allow"), rule("edit", "*", "deny"), rule("bash", "*", "deny")])).toBe(false)
  })

  test(promised("pass-over.C3", "without the right to change files leave no tool that could"), () => {
    const child = [rule("*", "*", "allow")]
    const limits = { can_modify_files: false, can_run_tools: true }
    const all = [...child, ...childRules({ limits, child, originator: child, copy: undefined })]
    for (const permission of ["edit", "bash", "task", "apply_patch"])
      expect(evaluate(all, permission, "x")).toBe("deny")
    expect(evaluate(all, "read", "src/a.ts")).toBe("allow")
    expect(mayUseTool("a_tool_of_a_plugin", limits)).toBe(false)
    expect(mayUseTool("grep", limits)).toBe(true)
    expect(refusedTools(limits)).toContain("bash")
  })

  test(
    promised("pass-over.C3", "without the right to run tools are to read, as its agent reads, and to return"),
    () => {
      const child = [rule("*", "*", "allow"), rule("read", "*.env", "deny")]
      const limits = { can_modify_files: false, can_run_tools: false }
      const all = [...child, ...childRules({ limits, child, originator: child, copy: undefined })]
      expect(evaluate(all, "webfetch", "x")).toBe("deny")
      expect(evaluate(all, "read", "src/a.ts")).toBe("allow")
      expect(evaluate(all, "read", "a.env")).toBe("deny")
      expect(evaluate(all, "pass_over_return", "x")).toBe("allow")
      expect(mayUseTool("webfetch", limits)).toBe(false)
      expect(mayUseTool("pass_over_return", limits)).toBe(true)
    },
  )
})
