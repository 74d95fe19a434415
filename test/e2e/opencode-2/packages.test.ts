import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { serveRegistry } from "../../support/files/registry.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { eventually, TASK } from "../../support/index.ts"
import { openServer2, openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

/** A package registry that has zod alone. @returns its address */
const serveZod = (): Promise<string> => {
  const folder = join(import.meta.dirname, "../../../node_modules/zod")
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const tarball = join(temporaryFolder(), "zod.tgz")
  execFileSync("tar", ["-czf", tarball, "--transform", "s,^zod,package,", "-C", join(folder, ".."), "zod"])
  return serveRegistry([{ name: "zod", version, tarball }])
}

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test(promised("v2.A4", "a clone's first start installs zod by OpenCode's own binary, and records come"), async () => {
    const task = await openTask2(() => ({ text: "The lexer is done." }))
    const folder = join(task.project.directory, ".opencode")
    rmSync(join(folder, "baton/zod"), { recursive: true })
    const registry = await serveZod()
    await using server = await openServer2(task.project, { npm_config_registry: registry })
    const id = await server.say(task.message)
    await eventually("zod", () => existsSync(join(folder, "node_modules/zod/package.json")) || undefined)
    await eventually("the line of the log", () =>
      task.project.batonLog().find((line) => line.includes("zod is installed")),
    )
    // Nothing of it is for the project's git.
    const changed = execFileSync("git", ["status", "--porcelain", "-uall"], {
      cwd: task.project.directory,
      encoding: "utf8",
    })
    expect(changed.split("\n").filter((line) => /^\?\? \.opencode\/(?!state)/.test(line))).toEqual([])
    await server.api("POST", `/session/${id}/compact`, {})
    const described = async () => {
      const { description } = await task.ledger.show(task.taskID)
      return description.includes("# Handoff after compaction 1") ? description : undefined
    }
    expect(await eventually("the record", described)).toContain(TASK.specification)
  })

  test(promised("v2.A4", "without a registry the session goes on, and the next start tries again"), async () => {
    const task = await openTask2(() => ({ text: "Done." }), {
      environment: { npm_config_registry: "http://127.0.0.1:9/" },
    })
    const folder = join(task.project.directory, ".opencode")
    rmSync(join(folder, "baton/zod"), { recursive: true })
    for (let start = 1; start <= 2; start++) {
      await using server = await openServer2(task.project)
      await server.say(task.message)
      const failures = () => task.project.batonLog().filter((line) => line.includes("zod could not be installed"))
      await eventually("the failure in the log", () => failures().length === start || undefined)
      expect(existsSync(join(folder, "package.json"))).toBe(false)
    }
    expect(task.model.received("turn").at(-1)?.conversation).toContain(task.taskID)
  })

  test(promised("v2.A4", "a package.json that is there is not touched, and the log says what to do"), async () => {
    const task = await openTask2(() => ({ text: "Done." }))
    const folder = join(task.project.directory, ".opencode")
    rmSync(join(folder, "baton/zod"), { recursive: true })
    task.project.write(".opencode/package.json", '{"name":"mine"}\n')
    await task.runWell(task.message)
    expect(task.project.read(".opencode/package.json")).toBe('{"name":"mine"}\n')
    expect(existsSync(join(folder, "node_modules"))).toBe(false)
  })
})
