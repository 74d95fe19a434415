import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { PACKAGE_ENTRY, packPackage, packZod, removePackage } from "../../support/files/packed-package.ts"
import { serveRegistry } from "../../support/files/registry.ts"
import { eventually, LEDGER_WAIT_MS, occurrences, REPOSITORY, TASK } from "../../support/index.ts"
import { openServer2, openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

removePackage()

const manifestOf = (folder: string) => JSON.parse(readFileSync(join(REPOSITORY, folder, "package.json"), "utf8"))

/** A registry that has the package and its dependency alone. */
const publish = () => {
  const [own, zod] = [manifestOf("."), manifestOf("node_modules/zod")]
  const { name, version, dependencies, engines } = own
  return serveRegistry([
    { name, version, tarball: packPackage(), manifest: { dependencies, engines } },
    { name: "zod", version: zod.version, tarball: packZod() },
  ])
}

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  test(
    promised("package.D1", "an entry in opencode.json gives all features, as one plugin, and no file of Baton"),
    async () => {
      const registry = await publish()
      const task = await openTask2(
        ({ kind }) =>
          kind === "compaction" ? { text: "## Done\n\n- The lexer.\n\n## Next\n\n1. The test." } : { text: "Done." },
        { bundle: "none", config: { plugin: [PACKAGE_ENTRY] }, environment: { npm_config_registry: registry } },
      )
      await using server = await openServer2(task.project)
      const id = await server.say(task.message)
      const own = (await server.plugins()).filter(({ id }) => id.includes("baton"))
      expect(own.map(({ id, state }) => `${id}: ${state.status}`)).toEqual(["baton-opencode: active"])
      const [turn] = task.model.received("turn").map(({ conversation }) => conversation)
      expect(turn).toContain(TASK.specification)
      expect(occurrences(turn ?? "", "[Baton] ")).toBe(1)
      await server.api("POST", `/session/${id}/compact`, {})
      const recorded = async () => ((await task.ledger.messages(task.taskID)).length > 0 ? true : undefined)
      await eventually("the record", recorded, ...LEDGER_WAIT_MS)
      expect(await task.ledger.messages(task.taskID)).toEqual(["Compaction 1: The lexer."])
      await server.command(id, "task", "")
      await server.say("go on", id)
      expect(task.model.received("turn").at(-1)?.conversation).toContain("The user typed /task, and Baton answered:")
      expect(task.project.batonLog().filter((line) => /level=(?:WARN|ERROR)/.test(line))).toEqual([])
      expect(existsSync(join(task.project.directory, "prompts"))).toBe(false)
      expect(readdirSync(join(task.project.directory, ".opencode"))).toEqual(["state"])
    },
  )
})
