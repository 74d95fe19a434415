import { basename, join } from "node:path"
import { broken, type Check, type Observation, ok, type Subject } from "../finding.ts"
import { findBatonPlugins } from "../plugin-files.ts"

const IMPORT_DEADLINE_MS = 15_000
const IMPORTER = join(import.meta.dirname, "..", "import-plugin.ts")

/** The arguments that make this runtime (OpenCode or Bun, or Node) run a TypeScript file without installing anything. */
const runtimeArguments = (): readonly string[] => ("Bun" in globalThis ? ["run", "--no-install"] : ["--no-warnings"])

type Imported = { readonly exports?: Readonly<Record<string, string>>; readonly error?: string }

/** @param line what import-plugin.ts printed last */
export const judgeImport = (file: string, line: string): Observation => {
  let imported: Imported
  try {
    imported = JSON.parse(line) as Imported
  } catch {
    const said = line === "" ? "nothing" : `'${line.slice(0, 200)}'`
    return broken(`${file}: the process that imported it ended early and said ${said}`, "Run scripts/install again.")
  }
  if (imported.error !== undefined) {
    const fix = /cannot find (module|package)/i.test(imported.error)
      ? "A file or package is missing: run scripts/install again, then start OpenCode once with the network on."
      : "OpenCode leaves this plugin out. Undo your change to it, or run scripts/install again."
    return broken(`${file} does not load: ${imported.error}`, fix)
  }
  const found = Object.entries(imported.exports ?? {})
  const [only] = found
  if (found.length === 1 && only?.[1] === "function") return ok(`${file} loads`)
  const names = found.map(([name, type]) => `${name} (${type})`).join(", ") || "nothing"
  const fix = "OpenCode calls every export as a plugin: leave exactly one function, or run scripts/install again."
  return broken(`${file} exports ${names}; expected one function`, fix)
}

const examinePlugin = async (path: string, { run, scratch }: Subject): Promise<Observation> => {
  const file = basename(path)
  const outcome = await run([process.execPath, ...runtimeArguments(), IMPORTER, path], {
    cwd: scratch,
    deadlineMs: IMPORT_DEADLINE_MS,
    env: { BUN_BE_BUN: "1" },
  })
  switch (outcome.kind) {
    case "not-started":
      return broken(`${file} could not be tried: ${outcome.cause}`, "Check that a child process may be started here.")
    case "timed-out":
      return broken(`${file} was still loading after ${outcome.deadlineMs} ms`, "Undo your change to it, or reinstall.")
    case "exited":
      return judgeImport(file, (outcome.stdout.trim() || outcome.stderr.trim()).split("\n").at(-1) ?? "")
  }
}

/** Each plugin is imported in a process of its own, as Bun where OpenCode is there: OpenCode itself is not started. */
export const pluginsCheck: Check = {
  id: "plugins",
  needsBundle: true,
  examine: async (subject) => {
    const paths = await findBatonPlugins(join(subject.root, ".opencode"))
    if (paths.length === 0) {
      return [
        broken("no plugin of Baton in .opencode/plugins", "Run scripts/install with this folder from a checkout."),
      ]
    }
    return await Promise.all(paths.map((path) => examinePlugin(path, subject)))
  },
}
