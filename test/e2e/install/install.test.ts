import { execFileSync } from "node:child_process"
import { lstatSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { startPackageRegistry } from "../../support/files/package-registry.ts"
import { runScript } from "../../support/files/small-checkout.ts"
import {
  closeTaskProjects,
  endsOf,
  type ModelReply,
  NEWEST,
  openTaskProject,
  REPOSITORY,
  snapshotTree,
  TASK,
  type TaskProject,
} from "../../support/index.ts"
import { compactsAfterSteps, recordsOf, runWell, turnsOf } from "../sessions.ts"

closeTaskProjects()

/** OpenCode uses ripgrep for searches and would download it if it is missing. */
const isRipgrepHere = (): boolean => {
  try {
    execFileSync("rg", ["--version"], { stdio: "pipe" })
    return true
  } catch {
    return false
  }
}

const install = ({ project }: TaskProject, ...args: string[]) =>
  runScript([join(REPOSITORY, "scripts", "install"), project.directory, ...args])

/** The project's files, without git's and the bundle's state. */
const sources = ({ project }: TaskProject) =>
  Object.entries(snapshotTree(project.directory)).filter(
    ([path]) => !/^(\.git|\.opencode\/state)\b(?!ignore)/.test(path),
  )

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  test(
    promised(
      ["install.E1", "install.E2"],
      "loads the installed bundle, which doctor finds sound, and no trace of it after uninstall",
    ),
    async () => {
      const task = await openTaskProject(binary, () => ({ text: "Noted." }), { bundle: "none" })
      const tasksFound = () => task.project.batonLog().filter((line) => line.includes("session has a task")).length
      const before = sources(task)
      expect(install(task).exitCode).toBe(0)
      await runWell(task, task.message)
      expect(tasksFound()).toBe(1)

      const { directory, environment } = task.project
      const installed = sources(task)
      const { exitCode, stdout } = runScript([join(directory, ".opencode/baton/bin/baton"), "doctor", "--json"], {
        cwd: directory,
        env: { ...environment, BATON_OPENCODE: binary.path },
      })
      const { findings }: { findings: { status: string }[] } = JSON.parse(stdout)
      expect(findings.filter(({ status }) => status === "broken")).toEqual([])
      expect(exitCode).toBe(0)
      expect(sources(task)).toEqual(installed)

      expect(install(task, "--uninstall", "--purge").exitCode).toBe(0)
      expect(sources(task)).toEqual(before)
      await runWell(task, task.message)
      expect(tasksFound()).toBe(1)
    },
  )
})

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test.skipIf(!isRipgrepHere())(
    promised("install.E4", "the agent's searches find the project, not the bundle"),
    async () => {
      const calls: ModelReply[] = [
        { tool: "grep", input: { pattern: "bundleClaim|claimBundle" } },
        { tool: "glob", input: { pattern: "**/*claim*.ts" } },
      ]
      const script = () => calls.shift() ?? { text: "Noted." }
      const task = await openTaskProject(binary, script, { bundle: "none" })
      const path = join(task.project.directory, ".opencode/baton/core/claim.ts")
      calls.push({ tool: "read", input: { filePath: path } })
      task.project.write("src/claims.ts", "export const bundleClaim = 1\n")
      install(task)
      await runWell(task, "Where are claims made?")
      const [, afterGrep, afterGlob, afterRead] = turnsOf(task)
      for (const found of [afterGrep, afterGlob]) {
        expect(found).toContain("src/claims.ts")
        expect(found).not.toContain(".opencode/baton")
      }
      expect(afterRead, "whoever asks for a file by name gets it").toContain("export const claimBundle")
    },
  )
})

// The registry serves only packages that npm has installed here: the plugin package of the newest version.
test(
  promised("install.E8", "the first start in a project installs what the plugins need, and they serve that very run"),
  async () => {
    const registry = await startPackageRegistry()
    const task = await openTaskProject(NEWEST, compactsAfterSteps(1))
    const folder = join(task.project.directory, ".opencode")
    // Leaves the files of `scripts/install`, as before OpenCode's first start.
    for (const name of ["node_modules", "package.json", "package-lock.json", ".gitignore"])
      rmSync(join(folder, name), { recursive: true })
    await runWell(task, task.message, { environment: { npm_config_registry: registry.url } })
    expect(registry.fetched).toContain("@opencode-ai/plugin")
    expect(lstatSync(join(folder, "node_modules")).isSymbolicLink()).toBe(false)
    expect(turnsOf(task)[0]).toContain(TASK.specification)
    expect(await recordsOf(task)).toEqual(["Compaction 1: A summary."])
  },
)
