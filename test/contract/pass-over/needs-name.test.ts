import { existsSync, lstatSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import { reasonForName } from "../../../.opencode/baton/pass-over/result/approval.ts"
import { promised } from "../../requirements.ts"
import { type FakeAgent, fakeToolContext } from "../../support/opencode/fake-opencode.ts"
import { DONE, openFeaturePasses } from "../../support/opencode/feature-passes.ts"
import { readIn, removeIn, writeFiles } from "../../support/opencode/pass-project.ts"

const PLANTED = [
  ...[".opencode/plugins/evil.ts", ".opencode/baton.json", "opencode.json", "opencode.jsonc", ".gitattributes"],
  ...[".gitmodules", ".github/workflows/x.yml", ".vscode/tasks.json", ".husky/pre-commit", ".envrc", ".mcp.json"],
  ...["AGENTS.md", "CLAUDE.md"],
]
const RUNNING =
  "prompts/handoff.md packages/app/.envrc packages/app/agents.md .GitHub/Workflows/x.yml .github/CODEOWNERS package.json a/Makefile .claude/settings.json .devcontainer/a.json .cursor/rules/a.mdc .circleci/config.yml .pre-commit-config.yaml lefthook.yml .npmrc .bashrc conftest.py lib/sitecustomize.py GEMINI.md .cursorrules vite.config.ts build.rs CMakeLists.txt a.gradle.kts app/App.csproj .any/thing".split(
    " ",
  )
const ORDINARY =
  "src/a.ts docs/AGENTS.md.txt src/opencode.ts my.envrc husky/a prompts/mine.md test/a.test.ts scripts/run.sh tools/make.py docs/package.json.md src/config.ts src/build.ts".split(
    " ",
  )

describe("a file that is applied by its name alone", () => {
  test(
    promised(
      ["pass-over.B9", "passes.A6"],
      "a file that is applied by its name alone is one that programs run or obey, at any depth and in any case",
    ),
    () => {
      for (const path of [...PLANTED, ...RUNNING]) expect(reasonForName({ path }), path).toBeDefined()
      for (const path of ORDINARY) expect(reasonForName({ path }), path).toBeUndefined()
      expect(reasonForName({ path: "src/a.ts", previous_path: ".envrc" })).toBeDefined()
      const reasons = [".envrc", "package.json", "AGENTS.md"].map((path) => reasonForName({ path }))
      expect(new Set(reasons).size).toBe(3)
      expect(reasonForName({ path: "run.sh", new_mode: "100755" })).toBe("it is executable")
      expect(reasonForName({ path: "run.sh", new_mode: "100644" })).toBeUndefined()
    },
  )

  test.each([
    ["docs/link", "../src/a.ts", false],
    ["link", "docs", false],
    ["docs/link", "../../outside", true],
    ["link", "/etc/shadow", true],
    ["docs/link", "../.git/config", true],
    ["link", "a/../..", true],
  ])(
    promised(
      "pass-over.B9",
      "a file that is applied by its name alone is a link that leads out of the worktree: %s → %s",
    ),
    (path, target, leadsOut) => {
      expect(reasonForName({ path, link_target: target }) !== undefined).toBe(leadsOut)
    },
  )
})

/** Works as a shell in the copy does: no rule and no hook sees what it writes. */
const planting: FakeAgent = async ({ write, giveBack, use }) => {
  const copy = String((await use("bash", { command: "true", workdir: "." })).workdir)
  await write("ok.txt", "ok\n")
  for (const path of PLANTED) writeFiles(copy, { [path]: "planted\n" })
  symlinkSync("/etc/shadow", join(copy, "NOTES.md"))
  symlinkSync("ok.txt", join(copy, "inside"))
  writeFileSync(join(copy, "run.sh"), "#!/bin/sh\n", { mode: 0o755 })
  await giveBack(DONE)
}

describe("what a child planted", () => {
  const planted = (root: string) => [...PLANTED, "NOTES.md"].filter((path) => existsSync(join(root, path)))

  test(
    promised(
      "pass-over.B9",
      "what a child planted is applied by no policy, and named with links, executables and modes",
    ),
    async () => {
      const passes = openFeaturePasses({ defaults: { auto_apply: true }, coder: planting })
      const answer = await passes.pass()
      expect(planted(passes.root)).toEqual([])
      expect(readIn(passes.root, "ok.txt")).toBe("ok\n")
      expect(lstatSync(join(passes.root, "inside")).isSymbolicLink()).toBe(true)
      expect(answer).toContain('added NOTES.md (link → "/etc/shadow", applied by its name alone: it leads out')
      expect(answer).toContain('added inside (link → "ok.txt"')
      expect(answer).toContain("added run.sh (executable, applied by its name alone: it is executable")
      expect(answer).toContain("added .envrc (applied by its name alone: a name with a dot in front is for tools")
      expect(answer).toContain("15 of them are pending")
    },
  )

  test(
    promised("pass-over.B9", "what a child planted is not applied with the rest, and when it is named it is"),
    async () => {
      const passes = openFeaturePasses({ coder: planting })
      await passes.pass()
      const answer = await passes.apply()
      expect(planted(passes.root)).toEqual([])
      expect(answer).toContain(`${passes.id()}: applied.`)
      expect(answer).toContain("Not applied yet, since each of these must be named in `artifacts`:\n- ")
      expect(await passes.apply()).toContain("nothing was applied")
      await passes.apply({ artifacts: ["CLAUDE.md", "NOTES.md"] })
      expect(readIn(passes.root, "CLAUDE.md")).toBe("planted\n")
      expect(lstatSync(join(passes.root, "NOTES.md")).isSymbolicLink()).toBe(true)
    },
  )

  test(
    promised(
      "pass-over.B9",
      "what a child planted is not written where a rule denies it, also after a user said always",
    ),
    async () => {
      const rules = [
        { permission: "*", pattern: "*", action: "allow" as const },
        { permission: "edit", pattern: ".opencode/plugins/**", action: "deny" as const },
        { permission: "edit", pattern: "run.sh", action: "ask" as const },
      ]
      const passes = openFeaturePasses({ defaults: { auto_apply: true }, coder: planting, rules })
      const answer = await passes.pass()
      expect(existsSync(join(passes.root, "ok.txt"))).toBe(true)
      expect(existsSync(join(passes.root, "run.sh")), "a rule asks for it").toBe(false)
      expect(answer).toContain("15 of them are pending")
      expect(await passes.apply({ artifacts: [".opencode/plugins/evil.ts"] })).toContain("not permitted here")
      expect(planted(passes.root)).toEqual([])
    },
  )

  test(
    promised(
      ["pass-over.C3", "guard.A2"],
      "what a child planted is judged outside git by rules that name it from the root of the file system",
    ),
    async () => {
      const rules: PermissionRule[] = [{ permission: "*", pattern: "*", action: "allow" }]
      const coder: FakeAgent = async ({ write, giveBack, use }) => {
        const copy = String((await use("bash", { command: "true", workdir: "." })).workdir)
        for (const path of ["asked.ts", "free.ts"]) await write(path, "new\n")
        writeFiles(copy, { ".opencode/tool/x.ts": "planted\n" })
        renameSync(join(copy, "old.ts"), join(copy, "new.ts"))
        await giveBack(DONE)
      }
      const passes = openFeaturePasses({ defaults: { auto_apply: true }, files: { "old.ts": "a\n" }, coder, rules })
      removeIn(passes.root, ".git")
      Object.assign(passes.opencode.input, { worktree: "/" })
      const place = passes.root.slice(1)
      for (const path of ["asked.ts", "old.ts", ".opencode/tool/**"])
        rules.push({ permission: "edit", pattern: `${place}/${path}`, action: "ask" })
      const feature = passes.start()
      const context = fakeToolContext(passes.opencode.rootID)
      await feature.pass({ subagent: "coder", objective: "Work", reason: "test", messages: 0 }, context)
      const there = ["asked.ts", "free.ts", "new.ts", ".opencode/tool/x.ts"]
      expect(there.filter((path) => existsSync(join(passes.root, path)))).toEqual(["free.ts"])
      const asked: string[] = []
      const ask = async ({ patterns }: { patterns: string[] }) => void asked.push(...patterns)
      const artifacts = ["asked.ts", "new.ts", ".opencode/tool/x.ts"]
      await feature.apply({ pass_over_id: passes.id(), artifacts }, { ...context, ask })
      expect(asked).toEqual([...artifacts, "old.ts"].map((path) => `${place}/${path}`))
      expect(there.every((path) => existsSync(join(passes.root, path)))).toBe(true)
    },
  )
})
