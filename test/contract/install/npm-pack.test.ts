import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

type Files = Readonly<Record<string, string>>

const OWN: Files = { "src/index.js": "1\n", "README.md": "# P\n", "src/keep.md": "k\n" }
/** As OpenCode leaves its folder after a start, and Baton after a session. */
const RUN_TIME: Files = {
  ".opencode/.gitignore": "node_modules\npackage.json\npackage-lock.json\nbun.lock\n.gitignore\n",
  ".opencode/package.json": "{}\n",
  ".opencode/bun.lock": "{}\n",
  ".opencode/node_modules/a/index.js": "1\n",
  ".opencode/state/.gitignore": "*\n",
  ".opencode/state/outbox/1.json": "{}\n",
  ".opencode/pass-over-logs/2026-01/a.jsonl": "{}\n",
  ".opencode/plugins/handoff.ts.baton-new": "x\n",
}
const TOOL = ".opencode/tool/ours.ts"

/** Installs Baton into a package, by the real installer, and asks the real npm what it would publish. */
const packed = (files: Files, manifest: Readonly<Record<string, unknown>> = {}): string[] => {
  const [folder, home] = [temporaryFolder(), temporaryFolder()]
  const put = (all: Files): void => {
    for (const [path, text] of Object.entries(all)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
  }
  put({ ...OWN, ...files, "package.json": JSON.stringify({ name: "p", version: "1.0.0", ...manifest }) })
  expect(runScript([join(REPOSITORY, "scripts/install"), folder, "--auto-task"]).exitCode).toBe(0)
  put(RUN_TIME)
  if (existsSync(join(folder, "prompts/handoff.md"))) put({ "prompts/handoff.md.baton-new": "x\n" })
  const env = { PATH: process.env.PATH, HOME: home, npm_config_cache: join(home, "npm") }
  const { exitCode, stdout, stderr } = runScript(["npm", "pack", "--dry-run", "--json"], { cwd: folder, env })
  expect(exitCode, stderr).toBe(0)
  const [list] = JSON.parse(stdout) as { files: { path: string }[] }[]
  return list?.files.map(({ path }) => path).sort() ?? []
}

const ALL = [...Object.keys(OWN), "package.json"].sort()

describe("the npm package of a project with Baton", () => {
  test.each<[string, Files, Record<string, unknown>, string[]]>([
    ["that chooses nothing", {}, {}, ALL],
    ["with a .gitignore", { ".gitignore": "node_modules\n*.md\n" }, {}, ["README.md", "package.json", "src/index.js"]],
    ["with an .npmignore", { ".npmignore": "src/keep.md\n" }, {}, ALL.filter((path) => path !== "src/keep.md")],
    ["with files", {}, { files: ["src"] }, ALL],
    ["with files that take all", {}, { files: ["**/*"] }, ALL],
    ["with files that take dot-files", {}, { files: ["**/*", ".opencode/**"] }, ALL],
    ["with prompts of its own", { "prompts/mail.md": "Dear\n" }, {}, [...ALL, "prompts/mail.md"].sort()],
    ["with an OpenCode tool of its own", { [TOOL]: "1\n" }, {}, [TOOL, ...ALL].sort()],
    ["with files that take such a tool", { [TOOL]: "1\n" }, { files: [".opencode", "src"] }, [TOOL, ...ALL].sort()],
  ])(promised("people.D2a", "%s has none of Baton's files"), (_, files, manifest, expected) => {
    expect(packed(files, manifest)).toEqual(expected)
  })
})
