import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import {
  endsOf,
  type OpenCodeBinary,
  REPOSITORY,
  runOpenCode,
  type ScriptedModel,
  snapshotTree,
  startScriptedModel,
} from "../../support/index.ts"
import { createTestProject, type TestProject } from "../../support/opencode/test-project.ts"

const MESSAGE = "# Worker\n\nTask: ts-0a1b2c\n\nKeep the lexer as it is.\n"

/** OpenCode uses ripgrep for searches and would download it if it is missing. */
const isRipgrepHere = (): boolean => {
  try {
    execFileSync("rg", ["--version"], { stdio: "pipe" })
    return true
  } catch {
    return false
  }
}

let model: ScriptedModel
let project: TestProject
/** The agent's tool calls, one per step, before it ends its turn. */
let calls: { tool: string; input: Record<string, unknown> }[]

/** Runs the tests of the calling block in a project without the bundle. */
const openProject = (binary: OpenCodeBinary): void => {
  beforeEach(async () => {
    calls = []
    model = await startScriptedModel(({ kind }) => (kind === "turn" && calls.shift()) || { text: "Noted." })
    project = createTestProject({ binary, modelURL: model.url, bundle: "none" })
  })
  afterEach(async () => {
    await model.close()
    await project.remove()
  })
}

const install = (...args: string[]) => runScript([join(REPOSITORY, "scripts", "install"), project.directory, ...args])
/** The bundle's log lines about a known task. */
const tasksFound = () =>
  project
    .log()
    .split("\n")
    .filter((line) => line.includes("session has a task") && line.includes("ts-0a1b2c")).length
const sources = () =>
  Object.entries(snapshotTree(project.directory)).filter(
    ([path]) => !/^(\.git|\.opencode\/state)\b(?!ignore)/.test(path),
  )

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  openProject(binary)

  test(promised("install.E1", "loads the installed bundle, and no trace of it after uninstall"), async () => {
    const before = sources()
    expect(install().exitCode).toBe(0)
    const withBundle = await runOpenCode(MESSAGE, { binary, project })
    expect(withBundle.exitCode, withBundle.stderr).toBe(0)
    expect(tasksFound()).toBe(1)

    expect(install("--uninstall", "--purge").exitCode).toBe(0)
    expect(sources()).toEqual(before)
    const without = await runOpenCode(MESSAGE, { binary, project })
    expect(without.exitCode, without.stderr).toBe(0)
    expect(tasksFound()).toBe(1)
  })
})

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  openProject(binary)

  test.skipIf(!isRipgrepHere())(
    promised("install.E4", "the agent's searches find the project, not the bundle"),
    async () => {
      project.write("src/claims.ts", "export const bundleClaim = 1\n")
      install()
      calls = [
        { tool: "grep", input: { pattern: "bundleClaim|claimBundle" } },
        { tool: "glob", input: { pattern: "**/*claim*.ts" } },
        { tool: "read", input: { filePath: join(project.directory, ".opencode/baton/core/claim.ts") } },
      ]
      expect((await runOpenCode("Where are claims made?", { binary, project })).exitCode).toBe(0)
      const [, afterGrep, afterGlob, afterRead] = model.received("turn").map(({ conversation }) => conversation)
      for (const found of [afterGrep, afterGlob]) {
        expect(found).toContain("src/claims.ts")
        expect(found).not.toContain(".opencode/baton")
      }
      expect(afterRead, "whoever asks for a file by name gets it").toContain("export const claimBundle")
    },
  )
})

describe.each(endsOf(2))("OpenCode $version", (binary) => {
  openProject(binary)

  test(promised("install.E2", "doctor finds the installed project sound after a run"), async () => {
    install()
    await runOpenCode(MESSAGE, { binary, project })
    const before = sources()
    const { exitCode, stdout } = runScript([join(project.directory, ".opencode/baton/bin/baton"), "doctor", "--json"], {
      cwd: project.directory,
      env: { ...project.environment, BATON_OPENCODE: binary.path },
    })
    const report = JSON.parse(stdout)
    const broken = report.findings.filter(({ status }: { status: string }) => status === "broken")
    expect({ exitCode, broken }).toEqual({ exitCode: 0, broken: [] })
    expect(sources()).toEqual(before)
  })
})
