import { existsSync } from "node:fs"
import { realpath } from "node:fs/promises"
import { basename, dirname, join, relative, sep } from "node:path"
import { NOT_YET_ON_2 } from "../../host/port.ts"
import { findExecutables, isExecutableFile } from "../../host/process.ts"
import { bundleRoot } from "../../host/project.ts"
import { cutText } from "../../host/text.ts"
import type { Context } from "../context.ts"
import { filesBelow, isCode, ownedByOthers, readInstalled } from "../installed.ts"
import { broken, type Check, INSTALL_HERE, type Observation, ok, warning } from "../report.ts"
import { findBatonPlugins, findEntry, otherFolders, type Serving } from "../serving.ts"

/** The versions of each line that the tests run on, oldest and newest, by its first number. */
const TESTED: Readonly<Record<number, readonly [oldest: string, newest: string]>> = {
  1: ["1.2.15", "1.18.33"],
  2: ["2.0.15", "2.0.15"],
}
const RANGE = "1.2.15 to 1.18.33 and 2.0.15"
const CHOOSE = `Use OpenCode ${RANGE}, or set BATON_OPENCODE to such a binary.`
const REPORT = "if something fails, report it with this line and the lines with [baton. of OpenCode's log"
const VERSION_DEADLINE_MS = 20_000

const INSTALL =
  "Install OpenCode (https://opencode.ai/docs), or set BATON_OPENCODE to its binary. OpenCode Desktop brings no command: it is not seen here."

type Located = { readonly path: string } | { readonly problem: Observation }

const locate = async ({ environment, home }: Context): Promise<Located> => {
  const named = environment.BATON_OPENCODE
  if (named) {
    if (isExecutableFile(named)) return { path: named }
    const message = `BATON_OPENCODE is '${named}', which is not a program`
    return { problem: broken(message, "Set BATON_OPENCODE to OpenCode's binary, or unset it.") }
  }
  // The plugins set it for the agent's shell: the running OpenCode.
  const running = environment.BATON_RUNTIME
  if (running && isExecutableFile(running)) return { path: running }
  const [onPath] = findExecutables("opencode", environment.PATH)
  if (onPath !== undefined) return { path: onPath }
  const installed = join(home, ".opencode", "bin", "opencode")
  if (isExecutableFile(installed)) return { path: installed }
  return { problem: broken("no OpenCode found on PATH", INSTALL) }
}

/** Even `--version` makes OpenCode write its folders and a library of 4 MB, and fetch its list of models. */
const isolated = (scratch: string): Record<string, string | undefined> => ({
  BUN_BE_BUN: undefined,
  XDG_CONFIG_HOME: join(scratch, "config"),
  XDG_DATA_HOME: join(scratch, "data"),
  XDG_CACHE_HOME: join(scratch, "cache"),
  XDG_STATE_HOME: join(scratch, "state"),
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  PWD: scratch,
  TMPDIR: scratch,
})

const numbersOf = (version: string): number[] | undefined => /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number)

const isOlder = (version: readonly number[], other: string): boolean => {
  const numbers = numbersOf(other) ?? []
  const different = version.findIndex((number, index) => number !== numbers[index])
  return different >= 0 && (version[different] ?? 0) < (numbers[different] ?? 0)
}

/** @param printed by `opencode --version`: `1.18.33`, or `opencode v2.0.15` */
export const checkVersion = (printed: string, path: string): Observation => {
  const version = printed.replace(/^(?:opencode )?v(?=\d)/, "")
  const found = `OpenCode ${version} (${path})`
  const numbers = numbersOf(version)
  if (numbers === undefined || numbers[0] === 0) {
    return warning(`${found}: a build without a release number`, `If something fails: ${CHOOSE}`)
  }
  const [major = 0] = numbers
  const tested = TESTED[major]
  if (tested === undefined) return broken(`${found}: OpenCode ${major}.x is not supported`, CHOOSE)
  const [oldest, newest] = tested
  if (isOlder(numbers, oldest)) return broken(`${found} is older than ${oldest}`, `Run 'opencode upgrade'. ${CHOOSE}`)
  const isNewer = !isOlder(numbers, newest) && numbers.join(".") !== newest
  const proven = isNewer ? `newer than ${newest}, the newest that Baton was run on: ${REPORT}` : `tested: ${RANGE}`
  return ok(`${found}; ${proven}${major === 2 ? `; not there yet on OpenCode 2: ${NOT_YET_ON_2}` : ""}`)
}

export const openCodeCheck: Check = {
  id: "opencode",
  run: async (context) => {
    const located = await locate(context)
    if ("problem" in located) return [located.problem]
    const { path } = located
    const outcome = await context.run([path, "--version"], {
      cwd: context.scratch,
      deadlineMs: VERSION_DEADLINE_MS,
      env: isolated(context.scratch),
    })
    const fix = `Run '${path} --version' to see why; reinstall OpenCode, or set BATON_OPENCODE to its binary.`
    switch (outcome.kind) {
      case "not-started":
        return [broken(`${path} does not start: ${outcome.cause}`, fix)]
      case "timed-out":
        return [broken(`${path} --version gave no answer within ${outcome.deadlineMs} ms`, fix)]
      case "exited": {
        const version = outcome.stdout.trim().split("\n").at(-1) ?? ""
        if (outcome.exitCode === 0 && version !== "") return [checkVersion(version, path)]
        const said = cutText((outcome.stderr || outcome.stdout).trim(), 200)
        return [broken(`${path} --version ended with exit code ${outcome.exitCode}: ${said}`, fix)]
      }
    }
  },
}

/** Variables that disable what Baton needs; measured on the real binary (docs/opencode-notes.md). */
const SWITCHES = {
  OPENCODE_PURE: "OpenCode then loads no plugins",
  OPENCODE_DISABLE_PROJECT_CONFIG: "OpenCode then does not look into the project's .opencode",
  OPENCODE_DISABLE_AUTOCOMPACT: "sessions are then never compacted by themselves",
} as const

export const switchesCheck: Check = {
  id: "environment",
  run: async ({ environment }) => {
    const set: Observation[] = Object.entries(SWITCHES)
      .filter(([name]) => environment[name])
      .map(([name, effect]) => warning(`${name} is set: ${effect}`, `Unset it before starting OpenCode: unset ${name}`))
    return set.length > 0 ? set : [ok("no variable switches plugins or compaction off")]
  },
}

const PACKAGE = join("@opencode-ai", "plugin", "package.json")

/** Finds the package as a module in `.opencode` would: in the nearest node_modules upwards that has it. */
const findPackage = (start: string): string | undefined => {
  let folder = start
  for (;;) {
    const path = join(folder, "node_modules", PACKAGE)
    if (existsSync(path)) return dirname(path)
    if (dirname(folder) === folder) return undefined
    folder = dirname(folder)
  }
}

/** zod checks what is stored. An installed bundle carries it; see loadZod in host/schema.ts. */
export const dependenciesCheck: Check = {
  id: "dependencies",
  needsBundle: true,
  run: async ({ serving: { kind, folder } }) => {
    if (kind === "package") return [ok("zod comes with the package")]
    if (existsSync(join(folder, "baton", "zod", "core"))) return [ok("zod comes with the bundle")]
    const found = findPackage(folder)
    if (found !== undefined) return [ok(`@opencode-ai/plugin is there, and zod with it (${found})`)]
    const installed = join(folder, "node_modules", "zod", "index.js")
    if (existsSync(installed)) return [ok(`zod is installed (${installed})`)]
    const fix =
      "Start OpenCode here once with the network on, which installs it; or install Baton again, which brings it along."
    return [warning("zod is missing, without which nothing that is stored can be read", fix)]
  },
}

const IMPORT_DEADLINE_MS = 15_000
const IMPORTER = join(import.meta.dirname, "..", "import-plugin.ts")

/** The arguments with which this runtime (OpenCode or Bun, or Node) runs a TypeScript file without installing anything. */
const runtimeArguments = (): readonly string[] => ("Bun" in globalThis ? ["run", "--no-install"] : ["--no-warnings"])

type Imported = { readonly exports?: Readonly<Record<string, string>>; readonly error?: string }

/** @param line the last line that import-plugin.ts printed */
export const checkImport = (file: string, line: string): Observation => {
  let imported: Imported
  try {
    imported = JSON.parse(line) as Imported
  } catch {
    const said = line === "" ? "nothing" : `'${cutText(line, 200)}'`
    return broken(`${file}: the process that imported it ended early and said ${said}`, "Install Baton again.")
  }
  if (imported.error !== undefined) {
    const fix = /cannot find (module|package)/i.test(imported.error)
      ? "A file or package is missing: install Baton again, then start OpenCode once with the network on."
      : "OpenCode leaves this plugin out. Undo your change to it, or install Baton again."
    return broken(`${file} does not load: ${imported.error}`, fix)
  }
  const found = Object.entries(imported.exports ?? {})
  const others = found.filter(([, type]) => type !== "function")
  // OpenCode 2 takes the default export, OpenCode 1 the function.
  const isEntry = others.length === 0 || (others.length === 1 && others[0]?.join() === "default,object")
  if (found.length - others.length === 1 && isEntry) return ok(`${file} loads`)
  const names = found.map(([name, type]) => `${name} (${type})`).join(", ") || "nothing"
  const fix = "OpenCode calls every export as a plugin: leave exactly one function, or install Baton again."
  return broken(`${file} exports ${names}; expected one function`, fix)
}

const checkPlugin = async (path: string, { run, scratch }: Context): Promise<Observation> => {
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
      return checkImport(file, (outcome.stdout.trim() || outcome.stderr.trim()).split("\n").at(-1) ?? "")
  }
}

/**
 * Tells why importing would run what scripts/install did not put there. Without a manifest only the copy that this doctor is
 * part of is imported: it runs already.
 */
const reasonNotToImport = async ({ folder, plugins, at }: Serving): Promise<string | undefined> => {
  const installed = await readInstalled(at)
  const bundle = join(folder, "baton")
  const here = plugins.map((path) => `.opencode/${relative(folder, path).split(sep).join("/")}`)
  if (installed === undefined) {
    if ((await realpath(bundle)) !== (await realpath(bundleRoot))) return "no manifest says what they are"
  } else {
    const { manifest, states, unlisted } = installed
    const foreign = [
      ...here.filter((path) => !manifest.files.has(path)),
      ...[...states.keys()].filter((path) => isCode(path) && states.get(path) === "changed"),
      ...unlisted,
    ]
    if (foreign[0] !== undefined) return `${foreign[0]} is not as the installer put it there`
  }
  const code = [...here, ...(await filesBelow(at, ".opencode/baton"))]
  const [others] = await ownedByOthers(at, code)
  return others === undefined ? undefined : `${others} belongs to another account`
}

/** OpenCode checks what npm delivers; nothing of it is run here. */
const checkFetched = ({ entry, folder, plugins }: Serving): Observation =>
  plugins.length > 0
    ? ok(`${entry} is fetched from npm (${dirname(folder)})`)
    : warning(
        `${entry} is not fetched from npm yet`,
        "OpenCode fetches it at its next start: start it once with the network on.",
      )

/** Imports each plugin in its own process. BUN_BE_BUN makes OpenCode's binary act as Bun: OpenCode itself does not start. */
export const pluginsCheck: Check = {
  id: "plugins",
  needsBundle: true,
  run: async (context) => {
    const { kind, plugins: paths } = context.serving
    if (kind === "package") return [checkFetched(context.serving)]
    if (paths.length === 0) return [broken("no plugin of Baton in .opencode/plugins", INSTALL_HERE)]
    const reason = await reasonNotToImport(context.serving)
    if (reason !== undefined) {
      const fix =
        "Look at that file first; then install Baton again (scripts/install from a checkout, or npx baton-opencode update)."
      return [broken(`the plugins are not tried, since importing would run them: ${reason}`, fix)]
    }
    return await Promise.all(paths.map((path) => checkPlugin(path, context)))
  },
}

export const copiesCheck: Check = {
  id: "copies",
  needsBundle: true,
  run: async (context) => {
    const others = otherFolders(context).filter((folder) => folder !== context.serving.folder)
    const copies = (await Promise.all(others.map(findBatonPlugins))).flat()
    const folders = [...new Set(copies.map(dirname))]
    const entry = context.serving.kind === "package" ? undefined : await findEntry(context)
    const fix =
      "Only one copy serves, the project's first; remove the plugins of the other one so that it is clear which."
    if (entry !== undefined)
      return [warning(`a second copy of Baton is loaded as well: ${entry} in opencode.json`, fix)]
    if (folders.length === 0) return [ok("no second copy of Baton that OpenCode would load")]
    return folders.map((folder) => {
      const names = copies.filter((path) => dirname(path) === folder).map((path) => basename(path))
      return warning(`a second copy of Baton is loaded as well: ${names.join(", ")} in ${folder}`, fix)
    })
  },
}
