import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import { taskSections } from "../../../.opencode/baton/compaction/texts.ts"
import { evaluate, matches, type PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import { type Untrusted, untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { advance } from "../../../.opencode/baton/pass-over/child/active-pass.ts"
import { createActivePasses } from "../../../.opencode/baton/pass-over/child/active-passes.ts"
import { childRules, isReader, isToolAllowed } from "../../../.opencode/baton/pass-over/child/permissions.ts"
import {
  MAX_DELAY_MS,
  type RetryPolicy,
  retryDelay,
  runWithRetry,
} from "../../../.opencode/baton/pass-over/child/session.ts"
import { lostError } from "../../../.opencode/baton/pass-over/result/work-output.ts"
import { toSandboxPaths } from "../../../.opencode/baton/pass-over/sandbox/paths.ts"
import { checkToolCall, hiddenTools, withoutCommands } from "../../../.opencode/baton/pass-over/session-hooks.ts"
import { parsePassSignal } from "../../../.opencode/baton/pass-over/signals.ts"
import { NO_WORDS } from "../../../.opencode/baton/task/user-words.ts"
import { protectedPaths, protectFiles } from "../../../.opencode/baton/write-guard/rules.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"
import { activePass } from "../../support/opencode/pass-over-values.ts"

type Action = PermissionRule["action"]

const rule = (permission: string, pattern: string, action: Action): PermissionRule => ({ permission, pattern, action })
const allow = (permission: string, pattern = "*") => rule(permission, pattern, "allow")
const deny = (permission: string, pattern = "*") => rule(permission, pattern, "deny")

const OPEN = allow("*")
const LIMITS = { can_modify_files: true, can_run_tools: true }
const NO_CHANGES = { can_modify_files: false, can_run_tools: true }
const NO_TOOLS = { can_modify_files: false, can_run_tools: false }
const SANDBOX = { relative: ".state/copy", moved: (path: string) => path.replace("/p/", "/p/.state/copy/") }

/** The rules that the write guard gives an agent. */
const guardedRules = (): PermissionRule[] => {
  const config: Parameters<typeof protectFiles>[0] = {}
  protectFiles(config, protectedPaths([""], []))
  const { edit } = Object(config.agent?.build?.permission)
  return Object.entries<Action>(edit).map(([pattern, action]) => rule("edit", pattern, action))
}
const GUARDED = guardedRules()

describe("the rights of a child", () => {
  test(
    promised(
      "pass-over.C3",
      "the rights of a child are never more than its originator's, nor more than its own agent's",
    ),
    () => {
      const strictness = { allow: 0, ask: 1, deny: 2 }
      const tools = ["edit", "bash", "read", "webfetch"]
      const values = ["src/a.ts", "docs/a.md", "docs/deep/b.md", "x.env", "git diff", "git push origin"]
      const anyRule = fc.record({
        permission: fc.constantFrom("*", ...tools),
        pattern: fc.constantFrom("*", "docs/*", "*.md", "src/a.ts", "*.env", "git *", "git push*"),
        action: fc.constantFrom("allow" as const, "ask" as const, "deny" as const),
      })
      const rules = fc.array(anyRule, { maxLength: 8 }).map((some) => [OPEN, ...some])
      const uses = fc.tuple(fc.constantFrom(...tools), fc.constantFrom(...values))
      const anyLimits = fc.constantFrom(LIMITS, NO_CHANGES, NO_TOOLS)
      forAll(
        5_000,
        [rules, rules, uses, anyLimits, fc.boolean()],
        (originator, child, [permission, value], limits, isCopy) => {
          const strictnessBy = (all: readonly PermissionRule[], of = value) => strictness[evaluate(all, permission, of)]
          const least = Math.max(strictnessBy(originator), strictnessBy(child))
          const sandbox = isCopy ? SANDBOX : undefined
          const all = [...child, ...childRules({ limits, child, originator, sandbox })]
          expect(strictnessBy(all)).toBeGreaterThanOrEqual(least)
          if (isCopy && ["edit", "read"].includes(permission))
            expect(strictnessBy(all, `${SANDBOX.relative}/${value}`)).toBeGreaterThanOrEqual(least)
        },
      )
    },
  )

  const globs = fc.constantFrom(
    "*",
    "docs/*",
    "*.md",
    "d*/*b.md",
    "*o*b*",
    "*b*o*",
    "git *",
    "g?? *",
    "git?*",
    "git push*",
    "src/a.ts",
  )
  const permissions = fc.constantFrom("*", "edit", "bash", "read", "*d*", "re*", "?ash")
  const actions = fc.constantFrom("allow" as const, "ask" as const, "deny" as const)
  const anyRules = fc.array(fc.record({ permission: permissions, pattern: globs, action: actions }), { maxLength: 7 })
  const USES = ["edit", "bash", "read", "readd", "task_show"]
  const VALUES = ["src/a.ts", "docs/a.md", "docs/deep/b.md", "bob", "git", "git ", "git push", "git push origin", "x"]

  test(promised("passes.A1", "a child's rights are exactly what its own agent and its originator both may do"), () => {
    const strictness = { allow: 0, ask: 1, deny: 2 }
    forAll(1_000, [anyRules, anyRules, fc.boolean()], (originator, child, isCopy) => {
      const sandbox = isCopy ? SANDBOX : undefined
      const all = [...child, ...childRules({ limits: LIMITS, child, originator, sandbox })]
      for (const use of USES) {
        for (const value of VALUES) {
          const least = Math.max(...[originator, child].map((rules) => strictness[evaluate(rules, use, value)]))
          const places = isCopy && ["edit", "read"].includes(use) ? [`${SANDBOX.relative}/${value}`] : [value]
          const isEdit = use === "edit" && child.findLast(({ permission }) => matches("edit", permission))
          const isClosed = isEdit && isEdit.action === "deny" && isEdit.pattern === "*"
          for (const place of places)
            expect(strictness[evaluate(all, use, place)], `${use} ${place}`).toBe(isClosed ? 2 : least)
        }
      }
    })
  })

  type Given = Partial<Parameters<typeof childRules>[0]>
  type Uses = { readonly allow: readonly string[]; readonly deny: readonly string[] }

  const inSandbox: Given = { child: [deny("read", "secret/*"), deny("read", "/p/private/*")], sandbox: SANDBOX }
  const usesInSandbox: Uses = {
    allow: ["read .state/copy/src/a.ts"],
    deny: ["read .state/copy/secret/key", "read /p/.state/copy/private/key"],
  }

  test.each<[string, Given, Uses]>([
    [
      "stay what its agent has where the originator may do everything",
      { child: [deny("bash"), allow("bash", "git diff*")], originator: [rule("external_directory", "*", "ask")] },
      { allow: ["bash git diff --stat"], deny: ["bash make", "question x"] },
    ],
    [
      "hold for files in the sandbox as they do for those of the worktree",
      { child: [deny("edit"), allow("edit", "docs/*")], originator: [deny("edit", "docs/frozen/*")], sandbox: SANDBOX },
      {
        allow: ["edit .state/copy/docs/a.md"],
        deny: ["edit .state/copy/src/a.ts", "edit .state/copy/docs/frozen/a.md"],
      },
    ],
    ["to read hold in the sandbox, by relative and by absolute paths", inSandbox, usesInSandbox],
    [
      "to read hold in the sandbox without the right to run tools, too",
      { ...inSandbox, limits: NO_TOOLS },
      usesInSandbox,
    ],
    [
      "without the right to change files leave no tool that could",
      { limits: NO_CHANGES },
      { allow: ["read src/a.ts"], deny: ["edit x", "bash x", "task x", "apply_patch x"] },
    ],
    [
      "in a copy reach it, which lies in the state folder, and Baton's own files there no more than in the project",
      {
        child: GUARDED,
        originator: GUARDED,
        sandbox: { relative: ".opencode/state/pass-over/p/copy", moved: (path: string) => path },
      },
      {
        allow: ["edit .opencode/state/pass-over/p/copy/src/a.ts"],
        deny: ["edit .opencode/state/pass-over/p/copy/.opencode/baton/a.ts", "edit .opencode/baton/a.ts"],
      },
    ],
    [
      "without the right to run tools are to read, as its agent reads, and to return",
      { limits: NO_TOOLS, child: [deny("read", "*.env")] },
      { allow: ["read src/a.ts", "pass_over_return x"], deny: ["webfetch x", "read a.env"] },
    ],
    [
      "without the right to run tools are to read no more than its originator may, in a copy, too",
      { limits: NO_TOOLS, originator: [deny("read", "secret/*"), deny("grep")], sandbox: SANDBOX },
      {
        allow: ["read src/a.ts", "read .state/copy/src/a.ts", "glob x"],
        deny: ["read secret/key", "read .state/copy/secret/key", "grep x"],
      },
    ],
  ])(
    promised("pass-over.C3", "the rights of a child %s"),
    (_what, { limits = LIMITS, child = [], originator = [], sandbox }, uses) => {
      const own = [OPEN, ...child]
      const all = [...own, ...childRules({ limits, child: own, originator: [OPEN, ...originator], sandbox })]
      for (const action of ["allow", "deny"] as const) {
        for (const use of uses[action]) {
          const [permission = "", ...value] = use.split(" ")
          expect(evaluate(all, permission, value.join(" ")), use).toBe(action)
        }
      }
    },
  )

  test(
    promised(
      "guard.A3",
      "the rights of a child leave its editing tools out of a request, whatever its originator is denied",
    ),
    () => {
      const originator = [OPEN, deny("edit", ".opencode/baton/**")]
      const rules = childRules({ limits: LIMITS, child: [OPEN, deny("edit")], originator, sandbox: undefined })
      expect(rules.findLast(({ permission }) => permission === "edit")).toEqual(deny("edit"))
    },
  )

  test.each([
    [NO_CHANGES, "a_tool_of_a_plugin", false],
    [NO_CHANGES, "bash", false],
    [NO_CHANGES, "grep", true],
    [NO_TOOLS, "webfetch", false],
    [NO_TOOLS, "pass_over_return", true],
  ])(promised("pass-over.C3", "the rights of a child with %j are to use %s: %s"), (limits, tool, expected) => {
    expect(isToolAllowed(tool, limits)).toBe(expected)
  })

  test(promised("pass-over.C3", "the rights of a child to no file at all are known by the agent's rules"), () => {
    const audit = [OPEN, deny("*"), allow("read")]
    expect(isReader(audit)).toBe(true)
    expect(isReader([...audit, allow("bash", "git diff*")])).toBe(false)
    expect(isReader([OPEN, deny("edit"), deny("bash")])).toBe(false)
  })
})

const pass = (extra = {}) => activePass({ limits: LIMITS, ...extra })

describe("a tool call in a pass", () => {
  const call = (tool: string, args = {}) => ({ tool, args, isOwn: true, home: "/home/u" })

  test.each([
    ["cat ~/p/a.ts", "cat /copy/a.ts"],
    ['cd "$HOME/p" && make', 'cd "/copy" && make'],
    ["ls ${HOME}/p/src ~/other ~/p-other", "ls /copy/src ~/other ~/p-other"],
    ['cat "$HOME"/p/a.ts', "cat /copy/a.ts"],
  ])(
    promised("pass-over.B2", "a tool call in a pass works on the sandbox also where the command says %s"),
    (command, expected) => {
      const sandbox = { directory: "/home/u/p", worktree: "/home/u/p", root: "/copy" }
      const verdict = checkToolCall(pass({ sandbox }), call("bash", { command }))
      expect(verdict).toMatchObject({ kind: "go", changes: { command: expected } })
    },
  )

  test(
    promised("pass-over.C3", "a tool call in a pass is refused where the pass may not, also in a session below"),
    () => {
      const reader = pass({ limits: NO_CHANGES })
      for (const isOwn of [true, false])
        expect(checkToolCall(reader, { tool: "bash", args: { command: "ls" }, isOwn, home: "/home/u" }).kind).toBe(
          "refused",
        )
      expect(checkToolCall(reader, { tool: "read", args: {}, isOwn: true, home: "/home/u" }).kind).toBe("go")
    },
  )

  test(
    promised("pass-over.A2", "a tool call in a pass is refused after the return, and so is a question to nobody"),
    () => {
      const returned = pass()
      advance(returned, { type: "returned", outcome: { kind: "failed", error: lostError(returned.id) } })
      expect(checkToolCall(returned, call("read")).kind).toBe("refused")
      expect(checkToolCall(pass(), call("question")).kind).toBe("refused")
    },
  )
})

test(promised("pass-over.C3", "what holds for a session of a pass holds for those below it, and ends with it"), () => {
  const passes = createActivePasses()
  passes.sessionCreated("ses_child", "ses_root")
  passes.sessionCreated("ses_below", "ses_child")
  const mine = pass()
  passes.turnStarted("ses_child", mine)
  expect(passes.covering("ses_below")).toBe(mine)
  expect(passes.of("ses_below")).toBeUndefined()
  expect(passes.covering("ses_root")).toBeUndefined()
  expect([passes.below("ses_root"), passes.below("ses_child")]).toEqual([[mine], []])
  passes.turnEnded("ses_child")
  expect(passes.covering("ses_below")).toBeUndefined()
})

test(promised("pass-over.B3", "a pass within a pass works in a sandbox of its originator's copy"), () => {
  const own = { directory: "/p/sub", roots: ["/p"] } as const
  const outer = toSandboxPaths(own, "/p/state/1/copy", undefined)
  const inner = toSandboxPaths(own, "/p/state/2/copy", outer)
  expect(outer).toMatchObject({ directory: "/p/sub", worktree: "/p" })
  expect(inner).toMatchObject({ directory: "/p/state/1/copy/sub", worktree: "/p/state/1/copy", spellings: ["/p"] })
  expect(toSandboxPaths(own, "/p/state/1/copy", outer)).toBe(outer)
})

test(promised("pass-over.A1", "a session of a pass is offered its return, and what its limits allow"), () => {
  const child = hiddenTools({ worksOnPass: true, hasPasses: false, limits: NO_CHANGES })
  expect(child).not.toContain("pass_over_return")
  expect(child).toEqual(expect.arrayContaining(["bash", "write", "question", "pass_over_apply"]))
})

test(promised("passes.A2", "the note on a task names tools, or nothing, to an agent without a shell"), () => {
  const identity = {
    taskID: "ts-b54507",
    role: "worker",
    said: NO_WORDS,
    order: "b".repeat(9_000),
    protocol: "",
    hasShell: true,
  } as const
  const [title, status, specification, definitionOfDone] = ["T", "open", "s ".repeat(9_000), "d"].map(untrusted) as [
    Untrusted,
    Untrusted,
    Untrusted,
    Untrusted,
  ]
  const ledger = { title, status, specification, definitionOfDone }
  const note = taskSections({ ...identity, ledger })
    .map(({ text, source }) => `${text}\n[rest: ${source}]`)
    .join("\n")
  expect(note).toContain("`prog show ts-b54507`")
  const [offered, bare] = [true, false].map((isOffered) => withoutCommands(note, isOffered))
  expect(offered).toContain("- `task_show`: the task, its log and its handoff\n- `task_log`: record each step")
  expect(offered).toContain("[rest: task_show]")
  for (const text of [offered, bare]) expect(text).not.toMatch(/\bprog \w/)
  expect(bare).toContain("d")
})

test(promised("pass-over.D2", "events of both versions are read, and others are nothing"), () => {
  const read = (type: string, properties: unknown) => parsePassSignal({ type, properties })
  const created = { kind: "created", sessionID: "s", parentID: "p" }
  expect(read("session.created", { info: { id: "s", parentID: "p" } })).toEqual(created)
  expect(read("session.error", { sessionID: "s", error: { name: "MessageAbortedError" } })?.kind).toBe("aborted")
  expect(read("session.error", { sessionID: "s", error: { name: "APIError" } })).toBeUndefined()
  const metadata = { pass_over_id: "pass_1", subagent: "coder", is_critical: true }
  const asked = {
    kind: "asked",
    sessionID: "s",
    permissionID: "per_1",
    passID: "pass_1",
    subagent: "coder",
    isCritical: true,
  }
  const asks = { id: "per_1", sessionID: "s", metadata }
  for (const type of ["permission.asked", "permission.updated"]) expect(read(type, asks)).toEqual(asked)
  expect(read("message.part.delta", { sessionID: "s" })).toBeUndefined()
  expect(read("session.idle", undefined)).toBeUndefined()
})

const POLICY: RetryPolicy = { max_retries: 3, retry_delay_ms: 1000, backoff_multiplier: 2 }

describe("the delays", () => {
  const delays = (policy: RetryPolicy) => [1, 2, 3].map((failed) => retryDelay(policy, failed))

  test.each([
    [POLICY, [1000, 2000, 4000]],
    [{ ...POLICY, backoff_multiplier: 1 }, [1000, 1000, 1000]],
    [{ ...POLICY, retry_delay_ms: 100_000, backoff_multiplier: 10 }, [100_000, MAX_DELAY_MS, MAX_DELAY_MS]],
  ])(promised("pass-over.E2", "the delays of %j are %j: they grow, and have an end"), (policy, expected) => {
    expect(delays(policy)).toEqual(expected)
  })
})

describe("the attempts", () => {
  const DELAYS = [1000, 2000, 4000]
  let timers: Set<unknown>
  beforeEach(() => {
    vi.useFakeTimers()
    timers = new Set()
    // The tests of a worker share its process: only the timers of these waits are counted.
    const { setTimeout: set, clearTimeout: clear } = globalThis
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((act: () => void, ms: number) => {
      const timer = set(act, ms)
      if (DELAYS.includes(ms)) timers.add(timer)
      return timer
    }) as typeof setTimeout)
    vi.spyOn(globalThis, "clearTimeout").mockImplementation((timer) => {
      timers.delete(timer)
      clear(timer)
    })
  })
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  /** Outcomes in order; the last one repeats. */
  const setUp = (outcomes: readonly string[], abort = new AbortController()) => {
    const attempts: number[] = []
    const failures: string[] = []
    const running = runWithRetry<string>({
      policy: POLICY,
      attempt: async (number) => {
        attempts.push(number)
        return outcomes[number - 1] ?? outcomes.at(-1) ?? ""
      },
      isRecoverable: (outcome) => outcome.startsWith("crash"),
      onFailure: async (outcome) => void failures.push(outcome),
      signal: abort.signal,
    })
    return { abort, attempts, failures, running }
  }

  test.each([
    ["the first that ends well", ["crash 1", "crash 2", "done"], 3],
    ["the last failure when there are no more", ["crash", "crash", "crash", "crash"], 4],
    ["what no other attempt can help", ["refused"], 1],
  ])(promised("pass-over.E2", "attempts end with %s"), async (_what, outcomes, attempts) => {
    const { running, failures } = setUp(outcomes)
    await vi.runAllTimersAsync()
    expect(await running).toEqual({ outcome: outcomes.at(-1), attempts })
    expect(failures).toEqual(outcomes.slice(0, -1))
    expect(timers.size).toBe(0)
  })

  test(
    promised("pass-over.E2", "attempts wait their time and end at once with the abort, leaving no timer"),
    async () => {
      const { running, abort, attempts } = setUp(["crash"])
      await vi.advanceTimersByTimeAsync(999)
      expect(attempts).toEqual([1])
      await vi.advanceTimersByTimeAsync(1)
      expect([attempts, timers.size]).toEqual([[1, 2], 1])
      abort.abort()
      expect(await running).toEqual({ outcome: undefined, attempts: 2 })
      expect([attempts, timers.size]).toEqual([[1, 2], 0])
    },
  )

  test(promised("pass-over.E2", "attempts are none when they are aborted before the first"), async () => {
    const abort = new AbortController()
    abort.abort()
    const { running } = setUp(["done"], abort)
    expect(await running).toEqual({ outcome: undefined, attempts: 0 })
  })
})
