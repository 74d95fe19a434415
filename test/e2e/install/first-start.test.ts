import { lstatSync, rmSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { startPackageRegistry } from "../../support/files/package-registry.ts"
import { COMPACTING_STEP, closeTaskProjects, NEWEST, openTaskProject, TASK } from "../../support/index.ts"

closeTaskProjects()

/** Reduces a project's `.opencode` to the files of `scripts/install`, as before OpenCode's first start. */
const removePackages = (folder: string): void => {
  for (const name of ["node_modules", "package.json", "package-lock.json", ".gitignore"])
    rmSync(join(folder, name), { recursive: true })
}

// The registry serves only packages that npm has installed here: the plugin package of the newest version.
test(
  promised("install.E8", "the first start in a project installs what the plugins need, and they serve that very run"),
  async () => {
    const registry = await startPackageRegistry()
    let step = 0
    const task = await openTaskProject(NEWEST, ({ kind }) => {
      if (kind === "compaction") return { text: "A summary." }
      return step++ === 0 ? COMPACTING_STEP : { text: "Finished." }
    })
    const folder = join(task.project.directory, ".opencode")
    removePackages(folder)
    const result = await task.run(task.message, { environment: { npm_config_registry: registry.url } })
    expect(result.exitCode, result.stderr).toBe(0)
    expect(registry.fetched).toContain("@opencode-ai/plugin")
    expect(lstatSync(join(folder, "node_modules")).isSymbolicLink()).toBe(false)
    expect(task.model.received("turn")[0]?.conversation).toContain(TASK.specification)
    const { logs } = await task.ledger.show(task.taskID)
    expect(logs.map(({ message }) => message)).toEqual(["Compaction 1: A summary."])
  },
)
