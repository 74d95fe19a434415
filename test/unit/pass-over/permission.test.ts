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

type Action = PermissionRule["action"]

const rule = (permission: string, pattern: string, action: Action): PermissionRule => ({ permission, pattern, action })

const OPEN = rule("*", "*", "allow")
const STRICTNESS = { allow: 0, ask: 1, deny: 2 }
const LIMITS = { can_modify_files: true, can_run_tools: true }
const NO_TOOLS = { can_modify_files: false, can_run_tools: false }
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
    fc.assert(
      fc.property(
        rules,
        rules,
        fc.constantFrom("edit", "bash", "read", "webfetch"),
        fc.constantFrom(...VALUES),
        (given, own, permission, value) => {
          const originator = [OPEN, ...given]
          const child = [OPEN, ...own]
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

  type Given = Partial<Parameters<typeof childRules>[0]>

  /** What a child whose agent may do everything but for some rules, as its originator, may do. */
  const decide = ({ limits = LIMITS, child = [], originator = [], copy }: Given) => {
    const own = [OPEN, ...child]
    const all = [...own, ...childRules({ limits, child: own, originator: [OPEN, ...originator], copy })]
    return (permission: string, value: string) => evaluate(all, permission, value)
  }

  test(promised("pass-over.C3", "stay what its agent has where the originator may do everything"), () => {
    const child = [rule("bash", "*", "deny"), rule("bash", "git diff*", "allow")]
    const may = decide({ child, originator: [rule("external_directory", "*", "ask")] })
    expect(may("bash", "git diff --stat")).toBe("allow")
    expect(may("bash", "make")).toBe("deny")
    expect(may("question", "x")).toBe("deny")
  })

  test(promised("pass-over.C3", "hold for files in the copy as they do for those of the worktree"), () => {
    const child = [rule("edit", "*", "deny"), rule("edit", "docs/*", "allow")]
    const may = decide({ child, originator: [rule("edit", "docs/frozen/*", "deny")], copy: COPY })
    expect(may("edit", ".state/copy/docs/a.md")).toBe("allow")
    expect(may("edit", ".state/copy/src/a.ts")).toBe("deny")
    expect(may("edit", ".state/copy/docs/frozen/a.md")).toBe("deny")
  })

  test.each([LIMITS, NO_TOOLS])(
    promised("pass-over.C3", "to read hold in the copy, by relative and by absolute paths: %j"),
    (limits) => {
      const child = [rule("read", "secret/*", "deny"), rule("read", "/p/private/*", "deny")]
      const may = decide({ limits, child, copy: COPY })
      expect(may("read", ".state/copy/src/a.ts")).toBe("allow")
      expect(may("read", ".state/copy/secret/key")).toBe("deny")
      expect(may("read", "/p/.state/copy/private/key")).toBe("deny")
    },
  )

  test(promised("pass-over.C3", "to no file at all are known by the agent's rules"), () => {
    const audit = [OPEN, rule("*", "*", "deny"), rule("read", "*", "allow")]
    expect(isReader(audit)).toBe(true)
    expect(isReader([...audit, rule("bash", "git diff*", "allow")])).toBe(false)
    expect(isReader([OPEN, rule("edit", "*", "deny"), rule("bash", "*", "deny")])).toBe(false)
  })

  test(promised("pass-over.C3", "without the right to change files leave no tool that could"), () => {
    const limits = { can_modify_files: false, can_run_tools: true }
    const may = decide({ limits })
    for (const permission of ["edit", "bash", "task", "apply_patch"]) expect(may(permission, "x")).toBe("deny")
    expect(may("read", "src/a.ts")).toBe("allow")
    expect(mayUseTool("a_tool_of_a_plugin", limits)).toBe(false)
    expect(mayUseTool("grep", limits)).toBe(true)
    expect(refusedTools(limits)).toContain("bash")
  })

  test(
    promised("pass-over.C3", "without the right to run tools are to read, as its agent reads, and to return"),
    () => {
      const may = decide({ limits: NO_TOOLS, child: [rule("read", "*.env", "deny")] })
      expect(may("webfetch", "x")).toBe("deny")
      expect(may("read", "src/a.ts")).toBe("allow")
      expect(may("read", "a.env")).toBe("deny")
      expect(may("pass_over_return", "x")).toBe("allow")
      expect(mayUseTool("webfetch", NO_TOOLS)).toBe(false)
      expect(mayUseTool("pass_over_return", NO_TOOLS)).toBe(true)
    },
  )
})
