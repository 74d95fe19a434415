import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { COMMAND_NAMES, loadAllCommands, loadCommandsNear } from "../../../.opencode/baton/ledger/embedded/cli.ts"
import { promised } from "../../requirements.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const EMBEDDED = join(REPOSITORY, ".opencode", "baton", "ledger", "embedded")

/** A file's imports at load time, without types and dynamic imports. */
const staticImports = (file: string): string[] =>
  [...readFileSync(file, "utf8").matchAll(/^import (?!type )[^"]*?from "([^"]+)"|^import "([^"]+)"/gms)].map(
    ([, from, alone]) => from ?? alone ?? "",
  )

/** A file and all files and modules that it loads. */
const loadedBy = (file: string, seen: Set<string> = new Set()): Set<string> => {
  if (seen.has(file)) return seen
  seen.add(file)
  for (const name of staticImports(file)) {
    if (name.startsWith(".")) loadedBy(join(dirname(file), name), seen)
    else seen.add(name)
  }
  return seen
}

const MAX_FILES_OF_LOG = 20

test(promised(["ledger.D3", "speed.G4"], "log loads few files, and of modules bun:sqlite alone"), () => {
  const loaded = [...loadedBy(join(EMBEDDED, "main.ts")), ...loadedBy(join(EMBEDDED, "commands", "write-tasks.ts"))]
  const modules = new Set(loaded.filter((name) => !name.startsWith("/")))
  expect([...modules]).toStrictEqual(["bun:sqlite"])
  expect(new Set(loaded).size).toBeLessThanOrEqual(MAX_FILES_OF_LOG)
  expect(loaded.join("\n")).not.toMatch(/help\.ts/)
})

test(promised("ledger.D3", "the commands know the store by its port: none loads a module of Bun"), () => {
  const commands = readdirSync(join(EMBEDDED, "commands")).flatMap((name) => [
    ...loadedBy(join(EMBEDDED, "commands", name)),
  ])
  expect(commands.filter((name) => name.startsWith("bun:") || name.includes("sqlite"))).toStrictEqual([])
})

test(promised("ledger.D3", "each command is found in the group that names it"), async () => {
  expect((await loadAllCommands()).map(({ name }) => name).toSorted()).toStrictEqual(COMMAND_NAMES.toSorted())
  for (const name of COMMAND_NAMES) {
    expect((await loadCommandsNear(name)).map((command) => command.name)).toContain(name)
  }
  expect(await loadCommandsNear("nothing")).toStrictEqual([])
})
