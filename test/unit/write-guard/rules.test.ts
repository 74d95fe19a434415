import { realpathSync, symlinkSync } from "node:fs"
import { join, relative } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Core } from "../../../.opencode/baton/core/core.ts"
import { evaluate, matches, type PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import { accountFolder } from "../../../.opencode/baton/host/project.ts"
import { createWriteGuard } from "../../../.opencode/baton/write-guard/guard.ts"
import { protectedPaths, protectFiles } from "../../../.opencode/baton/write-guard/rules.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { forAll } from "../../support/for-all.ts"
import { writeFiles } from "../../support/opencode/pass-project.ts"

const PATHS = protectedPaths([""], ["prompts/worker.md"])
const DENIED = [
  ".opencode/baton/host/guard.ts",
  ".opencode/plugins/a.ts",
  ".opencode/state/x",
  ".opencode/state.foreign-9/outbox/1.json",
  ".opencode/pass-over-logs/1",
  ".opencode/node_modules/zod/index.js",
]
const ASKED = [
  ".opencode/baton.json",
  ".opencode/opencode.json",
  ".opencode/opencode.jsonc",
  ".opencode/tool/evil.ts",
  ".opencode/tools/deep/evil.ts",
  ".opencode/agent/a.md",
  ".opencode/agents/a.md",
  ".opencode/commands/a.md",
  ".opencode/modes/a.md",
  ".opencode/skills/a/SKILL.md",
  "opencode.json",
  "opencode.jsonc",
  "prompts/worker.md",
]
const FREE = ["src/a.ts", ".opencode/notes.md", "AGENTS.md", "src/opencode.ts", "prompts/mine.md"]

type Setting = string | Record<string, unknown>
const rulesOf = (setting: Setting = {}): PermissionRule[] =>
  Object.entries(typeof setting === "string" ? { "*": setting } : setting).flatMap(([permission, value]) =>
    Object.entries(typeof value === "object" && value !== null ? value : { "*": value }).map(([pattern, action]) => ({
      permission,
      pattern,
      action,
    })),
  )

/** Decides as OpenCode does for an agent that may do everything by default. */
const decide = (
  path: string,
  config: { permission?: Setting; agent?: Record<string, { permission?: Setting }> },
  name = "build",
) =>
  evaluate(
    [...rulesOf("allow"), ...rulesOf(config.permission), ...rulesOf(config.agent?.[name]?.permission)],
    "edit",
    path,
  )

type TestConfig = Parameters<typeof decide>[1]
const protectedConfig = (config: TestConfig): TestConfig => {
  protectFiles(config, PATHS)
  return config
}

describe("rules behind the user's own", () => {
  const ALLOWING: TestConfig[] = [
    {},
    { permission: "allow" },
    { permission: { "*": "deny", read: "allow", edit: "allow" } },
    { permission: { edit: { "*": "allow", "*.md": "ask" }, "*": "allow" } },
    { agent: { build: { permission: { edit: "allow" } } } },
    { agent: { build: { permission: { edit: { "src/*": "ask" }, "*": "allow" } } } },
  ]
  test.each(ALLOWING)(
    promised(["guard.A1", "guard.A2", "people.C2"], "the guard's rules deny Baton's files, ask for settings: %j"),
    (config) => {
      const guarded = protectedConfig(config)
      expect(DENIED.map((path) => decide(path, guarded))).toEqual(DENIED.map(() => "deny"))
      expect(ASKED.map((path) => decide(path, guarded))).toEqual(ASKED.map(() => "ask"))
    },
  )

  const GUARD = DENIED[0] ?? ""
  const GUARD_DENIED = { ".opencode/**": "allow", "*guard.ts": "deny" }
  const OTHER_PROMPTS = { "*": "ask", "src/prompts/**": "deny", "*.json": "allow" }
  const denying = (pattern: string) => ({ "*": "allow", [pattern]: "deny" })
  test(promised("people.C2", "the guard's rules ask for OpenCode's settings in each folder up to the worktree"), () => {
    const { asked } = protectedPaths(["packages/app/"], [])
    for (const path of ["opencode.json", "packages/opencode.jsonc", "packages/app/opencode.json"])
      expect(asked, path).toContain(path)
    for (const folder of ["", "packages/"])
      for (const path of [".opencode/plugins/**", ".opencode/*.json", ".opencode/agent/**"])
        expect(asked, folder).toContain(`${folder}${path}`)
  })

  test(
    promised("people.C2", "the guard's rules ask for the same below the project, where OpenCode was started"),
    () => {
      const { asked, denied } = protectedPaths([""], [], ["packages/app/"])
      for (const path of ["packages/app/opencode.json", "packages/opencode.json", "packages/app/.opencode/plugins/**"])
        expect(asked, path).toContain(path)
      expect(denied).toEqual(PATHS.denied)
      expect(asked).not.toContain(".opencode/plugins/**")
    },
  )

  const OTHERS_ASKED = { ".opencode/baton.json": "ask", ".opencode/opencode.json": "deny", "prompts/worker.md": "ask" }
  test.each<[edit: Record<string, string>, paths: Record<string, string>]>([
    [{ ".opencode/**": "allow" }, { [GUARD]: "allow" }],
    [{ ".opencode/baton/host/*": "ask" }, { [GUARD]: "ask" }],
    [GUARD_DENIED, { [GUARD]: "deny", ".opencode/baton/b.ts": "allow" }],
    [{ ".opencode/**": "allow", "*": "allow" }, { [GUARD]: "deny" }],
    [{ "prompts/*": "allow" }, { "prompts/worker.md": "allow" }],
    [OTHER_PROMPTS, { ".opencode/opencode.json": "ask", "src/prompts/a.md": "deny" }],
    [denying(".opencode/opencode.json"), OTHERS_ASKED],
    [denying("*/opencode.json"), OTHERS_ASKED],
  ])(
    promised(["guard.A2", "guard.A3"], "the guard's rules yield to those that name the files: %j gives %j"),
    (edit, paths) => {
      const guarded = protectedConfig({ permission: { edit } })
      for (const [path, verdict] of Object.entries(paths)) expect(decide(path, guarded), path).toBe(verdict)
    },
  )

  const action = fc.constantFrom("allow", "ask", "deny")
  const PATTERNS = `* ** *.ts src/* .opencode/** .opencode/baton/** .opencode/*.json prompts/* *.json */opencode.json`
  const pattern = fc.constantFrom(...PATTERNS.split(" "))
  const setting = fc.oneof(
    action,
    fc.dictionary(fc.constantFrom("edit", "*", "bash", "read"), fc.oneof(action, fc.dictionary(pattern, action))),
  )
  const WEIGHT = { allow: 0, ask: 1, deny: 2 }

  test(
    promised(
      "guard.A3",
      "the guard's rules allow nothing that the user's rules do not, and change nothing about other files",
    ),
    () => {
      forAll(500, [setting, setting], (permission, own) => {
        const config = (): TestConfig => structuredClone({ permission, agent: { build: { permission: own } } })
        const [user, guarded] = [config(), protectedConfig(config())]
        for (const path of [...DENIED, ...ASKED, ...FREE]) {
          const [was, is] = [decide(path, user), decide(path, guarded)]
          if (FREE.includes(path)) expect(is, path).toBe(was)
          else expect(WEIGHT[is], path).toBeGreaterThanOrEqual(WEIGHT[was])
        }
      })
    },
  )

  test(
    promised(
      "guard.A3",
      "the guard's rules leave out an agent that may change no file, so that it is not offered the tools",
    ),
    () => {
      const config: TestConfig = {
        permission: { edit: "deny" },
        agent: { reader: { permission: { "*": "deny" } }, writer: { permission: { edit: "allow" } } },
      }
      const guarded = protectedConfig(structuredClone(config))
      expect(guarded.agent?.reader).toEqual(config.agent?.reader)
      expect([guarded.agent?.build, guarded.agent?.explore]).toEqual([undefined, undefined])
      expect(Object.keys(Object(guarded.agent?.writer?.permission))).toEqual(["edit", "edit*"])
      const isLast = rulesOf(config.agent?.reader?.permission).findLast(({ permission }) => matches("edit", permission))
      expect(isLast).toMatchObject({ pattern: "*", action: "deny" })
    },
  )
})

describe("the look at a path before a tool runs", () => {
  const open = (permission: Setting = "allow", place = "", files: Record<string, string> = {}, started = "") => {
    const worktree = realpathSync(temporaryFolder())
    const project = join(worktree, place)
    const write = (written: Record<string, string>) => writeFiles(project, written)
    write({ ".opencode/baton/host/guard.ts": "text\n", ".opencode/state/outbox/1.json": "text\n" })
    write({ "prompts/worker.md": "# Worker\n<!-- baton:brief -->\n", ...files })
    const core = { input: { worktree, directory: join(project, started) }, projectRoot: project, root: worktree }
    const guard = createWriteGuard(core as Core)
    const config = { permission } as TestConfig
    guard.protect(config as Parameters<typeof guard.protect>[0])
    return { project, guard, config, write, link: (to: string, at: string) => symlinkSync(to, join(project, at)) }
  }
  const NAMES = [
    ".opencode/baton/host/guard.ts",
    "./.opencode//baton/new/file.ts",
    "src/../.opencode/state/live/a.json",
    ".OpenCode/Baton/host/guard.ts",
    ".open\u200ccode/plugins/a.ts",
    "to-baton/host/guard.ts",
    "to-file.ts",
    "to-nothing.ts",
    "to-link.ts",
    "to-above.ts",
  ]
  /** Of the tools in it OpenCode 1.2.15 asks no plugin. */
  const batch = (filePath: string) => ({
    tool_calls: [{ tool: "read" }, { tool: "write", parameters: { filePath, content: "" } }],
  })
  test.each(["", "packages/app"])(
    promised("guard.A1", "the look at a path before a tool runs refuses every name of a file of Baton's (%j)"),
    (place) => {
      const { project, guard, link } = open("allow", place)
      link(".opencode/baton", "to-baton")
      link(".opencode/baton/host/guard.ts", "to-file.ts")
      link(".opencode/plugins/evil.ts", "to-nothing.ts")
      link("to-nothing.ts", "to-link.ts")
      // By way of a link the folder above is another one than by its name.
      link("to-baton/../plugins/evil.ts", "to-above.ts")
      for (const name of [...NAMES, join(project, ".opencode/pass-over-logs/1.jsonl")]) {
        expect(guard.refusal("write", { filePath: name }), name).toContain("Baton's own files")
        expect(guard.refusal("edit", { filePath: name }), name).toBeDefined()
        expect(guard.refusal("batch", batch(name)), name).toContain("Baton's own files")
        const patchText = `*** Begin Patch\n*** Add File: src/a.ts\n+a\n*** Update File: ${name}\n@@\n-a\n+b\n*** End Patch`
        expect(guard.refusal("apply_patch", { patchText }), name).toBeDefined()
      }
      // OpenCode takes what follows the colon, without white space around it.
      for (const header of ["Add File:", "Update File:\t ", "Delete File:\u00a0", "Add File:\u2028", "Add File:\r"]) {
        const patchText = `*** Begin Patch\n*** ${header}.opencode/plugins/x.ts \n+a\n*** End Patch`
        expect(guard.refusal("apply_patch", { patchText }), JSON.stringify(header)).toBeDefined()
      }
      for (const name of FREE) expect(guard.refusal("batch", batch(name)), name).toBeUndefined()
      expect(guard.refusal("batch", { tool_calls: "all" })).toBeUndefined()
      for (const name of [...FREE, ".opencode/baton.json", "prompts/worker.md"])
        expect(guard.refusal("write", { filePath: name }), name).toBeUndefined()
    },
  )

  test.each(["its real folder", "the root, as outside git"])(
    promised(
      ["guard.A1", "guard.A2"],
      "the look at a path before a tool runs knows the files of a project that a link leads to, with %s as the worktree",
    ),
    (kind) => {
      const { project } = open()
      const byLink = join(temporaryFolder(), "link")
      symlinkSync(project, byLink)
      const worktree = kind === "its real folder" ? project : "/"
      const guard = createWriteGuard({ input: { worktree, directory: byLink }, projectRoot: byLink } as Core)
      const config: TestConfig = {}
      guard.protect(config as Parameters<typeof guard.protect>[0])
      for (const root of [byLink, project]) {
        const named = (path: string) => relative(worktree, join(root, path))
        expect(guard.refusal("write", { filePath: join(root, NAMES[0] ?? "") })).toContain("Baton's own files")
        expect(guard.refusal("write", { filePath: join(root, "prompts/worker.md") })).toBeUndefined()
        expect(decide(named(".opencode/state/x"), config), root).toBe("deny")
        expect(decide(named("prompts/worker.md"), config), root).toBe("ask")
      }
    },
  )

  test(
    promised(
      "guard.A1",
      "the look at a path before a tool runs refuses what Baton keeps for the account: its key and settings",
    ),
    () => {
      const { guard } = open()
      for (const name of ["state.key", "baton.json"])
        expect(guard.refusal("write", { filePath: join(accountFolder(), name) }), name).toContain("Baton's own files")
      // `baton work --worktrees` lets agents work there.
      const ofWorktree = join(accountFolder(), "worktrees", "app-1a2b3c4d", "ts-abc123", "src", "a.ts")
      expect(guard.refusal("write", { filePath: ofWorktree })).toBeUndefined()
    },
  )

  test(
    promised(
      "guard.A2",
      "the look at a path before a tool runs refuses another name of a file that OpenCode would ask for",
    ),
    () => {
      const { guard, link } = open()
      link("prompts/worker.md", "notes.md")
      for (const name of ["notes.md", ".OPENCODE/baton.json"])
        expect(guard.refusal("write", { filePath: name }), name).toContain("under another name")
    },
  )

  test(
    promised(
      ["guard.A2", "people.C2"],
      "the look at a path before a tool runs knows what OpenCode reads between the project and the folder it was started in",
    ),
    () => {
      const { guard, config, link } = open("allow", "", { "packages/app/a.ts": "" }, "packages/app")
      for (const path of ["packages/opencode.json", "packages/app/.opencode/plugins/evil.ts"]) {
        expect(decide(path, config), path).toBe("ask")
        link(`../../${path}`, `packages/app/${path.length}.txt`)
        expect(guard.refusal("write", { filePath: `${path.length}.txt` }), path).toContain("under another name")
      }
    },
  )

  test(promised("guard.A1", "the guard holds where the folder that OpenCode was started in is gone"), () => {
    const { guard } = open("allow", "", {}, "gone/app")
    expect(guard.refusal("write", { filePath: "../../.opencode/plugins/evil.ts" })).toContain("Baton's own files")
  })

  // OpenCode puts the answer behind all rules, and asks for no edit any more.
  test(
    promised(
      "guard.A2",
      "the look at a path before a tool runs refuses what OpenCode would ask for after the user answered always",
    ),
    () => {
      const files = [".opencode/opencode.json", "prompts/worker.md"]
      const afterAnswer = (reply: string, permission: string, rules: Setting) => {
        const { guard } = open(rules)
        guard.watch({ type: "permission.asked", properties: { id: "per_1", permission, patterns: ["src/a.ts"] } })
        guard.watch({ type: "permission.replied", properties: { requestID: "per_1", reply } })
        return files.map((filePath) => guard.refusal("write", { filePath }) ?? "none")
      }
      const refused = expect.stringContaining("OpenCode asks for no edit any more")
      expect(afterAnswer("always", "edit", "allow")).toEqual([refused, refused])
      expect(afterAnswer("always", "edit", { edit: { ".opencode/**": "ask", "prompts/**": "allow" } })).toEqual([
        refused,
        "none",
      ])
      expect(afterAnswer("once", "edit", "allow")).toEqual(["none", "none"])
      expect(afterAnswer("always", "bash", "allow")).toEqual(["none", "none"])
    },
  )

  test(
    promised(
      "guard.A2",
      "the look at a path before a tool runs refuses the same of a pass's files, which are named from the worktree",
    ),
    () => {
      const { guard } = open("allow")
      const apply = (...artifacts: string[]) => guard.refusal("pass_over_apply", { pass_over_id: "pass_1", artifacts })
      expect(apply(".opencode/opencode.json")).toBeUndefined()
      expect(apply("src/a.ts", ".opencode/baton/a.ts")).toBeDefined()
      guard.watch({ type: "permission.asked", properties: { id: "per_1", permission: "edit", patterns: ["src/a.ts"] } })
      guard.watch({ type: "permission.replied", properties: { requestID: "per_1", reply: "always" } })
      expect(apply(".opencode/opencode.json")).toContain("OpenCode asks for no edit any more")
      expect(apply("src/a.ts")).toBeUndefined()
    },
  )

  test(
    promised(
      "guard.A2",
      "the look at a path before a tool runs asks for a prompt that is not there yet, not for the project's own of its name",
    ),
    () => {
      const ours = "# Handoff\n<!-- baton:handoff -->\n"
      const { guard, config, write, link } = open("allow", "", {
        "prompts/handoff.md": "of the project\n",
        ".opencode/prompts/handoff.md": ours,
        "prompts/planner.md": "of the project\n",
      })
      const asked = ["prompts/handoff.md", ".opencode/prompts/handoff.md", "prompts/handoff-command.md"]
      expect(asked.map((path) => decide(path, config))).toEqual(["ask", "ask", "ask"])
      expect(decide("prompts/planner.md", config)).toBe("allow")
      link("prompts/handoff-command.md", "a.md")
      expect(guard.refusal("write", { filePath: "a.md" })).toContain("under another name")
      // Baton is installed while OpenCode runs.
      link("prompts/planner.md", "b.md")
      expect(guard.refusal("write", { filePath: "b.md" })).toBeUndefined()
      write({ ".opencode/prompts/planner.md": ours })
      expect(guard.refusal("write", { filePath: "b.md" })).toBeDefined()
    },
  )

  // OpenCode's rules judge the file that is moved, and not where it goes (1.2.15 and 1.18.33).
  test(
    promised("guard.A2", "the look at a path before a tool runs refuses to move a file to where OpenCode would ask"),
    () => {
      const move = (path: string) => ({
        patchText: `*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: ${path}\n@@\n-a\n+b\n*** End Patch`,
      })
      const { guard } = open()
      for (const name of [".opencode/opencode.json", "prompts/worker.md"])
        expect(guard.refusal("apply_patch", move(name)), name).toContain("so that the user can be asked")
      expect(guard.refusal("apply_patch", move("src/b.ts"))).toBeUndefined()
      const { guard: allowing } = open({ edit: { "prompts/**": "allow" } })
      expect(allowing.refusal("apply_patch", move("prompts/worker.md"))).toBeUndefined()
    },
  )

  test(
    promised(
      "guard.A3",
      "the look at a path before a tool runs lets through what a rule of the user's names, and a pass's copy of the project",
    ),
    () => {
      const { guard } = open({ edit: { ".opencode/baton/**": "allow" } })
      expect(guard.refusal("write", { filePath: ".opencode/baton/host/guard.ts" })).toBeUndefined()
      expect(guard.refusal("write", { filePath: ".opencode/state/a" })).toBeDefined()
      const copy = ".opencode/state/pass-over/pass_1/copy"
      expect(guard.refusal("write", { filePath: `${copy}/src/a.ts` })).toBeUndefined()
      expect(guard.refusal("write", { filePath: `${copy}/prompts/worker.md` })).toBeUndefined()
      expect(guard.refusal("write", { filePath: `${copy}/.opencode/plugins/a.ts` })).toBeDefined()
      expect(guard.refusal("write", { filePath: `${copy}/../pass.json` })).toBeDefined()
    },
  )
})
