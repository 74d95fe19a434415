import { existsSync } from "node:fs"
import { readdir, realpath } from "node:fs/promises"
import { basename, dirname, join, relative, sep } from "node:path"
import { isNotFound } from "../../host/log.ts"
import { findExecutables, isExecutableFile } from "../../host/process.ts"
import { bundleRoot } from "../../host/project.ts"
import { readOwnText } from "../../host/untrusted.ts"
import { filesBelow, isCode, ownedByOthers, readInstalled } from "../installed.ts"
import { broken, type Check, type Context, type Observation, ok, warning } from "../report.ts"

/** The oldest version that every test runs on; 2.x refuses plugins of the 1.x kind (docs/opencode-notes.md). */
const OLDEST = [1, 2, 15] as const
const RANGE = "1.2.15 or newer, below 2"
const VERSION_DEADLINE_MS = 20_000

const INSTALL =
  "Install OpenCode (https://opencode.ai/docs), or set BATON_OPENCODE to its binary. OpenCode Desktop brings no command: it is not seen here."

type Located = { readonly path: string } | { readonly problem: Observation }

const locate = async ({ environment, home }: Context): Promise<Located> => {
  const named = environment.BATON_OPENCODE
  if (named) {
    if (await isExecutableFile(named)) return { path: named }
    const message = `BATON_OPENCODE is '${named}', which is not a program`
    return { problem: broken(message, "Set BATON_OPENCODE to OpenCode's binary, or unset it.") }
  }
  // The plugins set it for the agent's shell: the running OpenCode.
  const running = environment.BATON_RUNTIME
  if (running && (await isExecutableFile(running))) return { path: running }
  const [onPath] = await findExecutables("opencode", environment.PATH)
  if (onPath !== undefined) return { path: onPath }
  const installed = join(home, ".opencode", "bin", "opencode")
  if (await isExecutableFile(installed)) return { path: installed }
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

/** @param version as `opencode --version` prints it */
export const checkVersion = (version: string, path: string): Observation => {
  const found = `OpenCode ${version} (${path})`
  const numbers = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number)
  if (numbers === undefined || numbers[0] === 0) {
    return warning(`${found}: a build without a release number`, `Use a release if something fails: ${RANGE}.`)
  }
  const [major = 0] = numbers
  if (major >= 2) {
    return broken(`${found}: OpenCode 2.x is not supported, it refuses plugins of this kind`, `Use OpenCode ${RANGE}.`)
  }
  const different = numbers.findIndex((number, index) => number !== OLDEST[index])
  const older = different >= 0 && (numbers[different] ?? 0) < (OLDEST[different] ?? 0)
  if (older) return broken(`${found} is too old`, `Upgrade: opencode upgrade. Supported: ${RANGE}.`)
  return ok(`${found}; supported: ${RANGE}`)
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
        const said = (outcome.stderr || outcome.stdout).trim().slice(0, 200)
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

/** zod is part of it; see loadZod in host/schema.ts. */
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

export const dependenciesCheck: Check = {
  id: "dependencies",
  needsBundle: true,
  run: async ({ root }) => {
    const found = findPackage(join(root, ".opencode"))
    if (found !== undefined) return [ok(`@opencode-ai/plugin is there (${found})`)]
    const fix = "OpenCode installs it at its first start in the project: start it once with the network on."
    return [warning("@opencode-ai/plugin is not installed in .opencode/node_modules yet", fix)]
  },
}

/** OpenCode scans both folders, but not their sub-folders. */
const FOLDERS = ["plugin", "plugins"] as const

/** Matches Baton's plugins: they import the shared folder. */
const IMPORTS_BATON = /from\s*["']\.\.\/baton\//

const pluginsIn = async (folder: string): Promise<readonly string[]> => {
  let names: readonly string[]
  try {
    names = await readdir(folder)
  } catch (error) {
    if (isNotFound(error)) return []
    throw error
  }
  const paths = names
    .filter((file) => /\.(ts|js)$/.test(file))
    .sort()
    .map((file) => join(folder, file))
  const texts = await Promise.all(paths.map((path) => readOwnText(path, { isForeign: true }).catch(() => "")))
  return paths.filter((_, index) => IMPORTS_BATON.test(texts[index] ?? ""))
}

/**
 * Absolute paths of Baton's plugin files that OpenCode would load from a configuration folder, `.opencode` or the global one.
 * Unreadable files are left out.
 */
const findBatonPlugins = async (configuration: string): Promise<readonly string[]> =>
  (await Promise.all(FOLDERS.map((folder) => pluginsIn(join(configuration, folder))))).flat()

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
const reasonNotToImport = async (root: string, plugins: readonly string[]): Promise<string | undefined> => {
  const installed = await readInstalled(root)
  const bundle = join(root, ".opencode", "baton")
  const here = plugins.map((path) => relative(root, path).split(sep).join("/"))
  if (installed === undefined) {
    if ((await realpath(bundle)) !== (await realpath(bundleRoot))) return "no manifest says what they are"
  } else {
    const { manifest, states, unlisted } = installed
    const foreign = [
      ...here.filter((path) => !manifest.files.has(path)),
      ...[...states.keys()].filter((path) => isCode(path) && states.get(path) === "changed"),
      ...unlisted,
    ]
    if (foreign[0] !== undefined) return `${foreign[0]} is not as scripts/install put it there`
  }
  const code = [...here, ...(await filesBelow(root, ".opencode/baton"))]
  const [others] = await ownedByOthers(root, code)
  return others === undefined ? undefined : `${others} belongs to another account`
}

/** Imports each plugin in its own process. BUN_BE_BUN makes OpenCode's binary act as Bun: OpenCode itself does not start. */
export const pluginsCheck: Check = {
  id: "plugins",
  needsBundle: true,
  run: async (context) => {
    const paths = await findBatonPlugins(join(context.root, ".opencode"))
    if (paths.length === 0) {
      return [
        broken("no plugin of Baton in .opencode/plugins", "Run scripts/install with this folder from a checkout."),
      ]
    }
    const reason = await reasonNotToImport(context.root, paths)
    if (reason !== undefined) {
      const fix = "Look at that file first; then run scripts/install again from a checkout of Baton."
      return [broken(`the plugins are not tried, since importing would run them: ${reason}`, fix)]
    }
    return await Promise.all(paths.map((path) => checkPlugin(path, context)))
  },
}

/** `.opencode` of the parent folders up to the one with `.git`: OpenCode reads them all. */
const outerFolders = (root: string): readonly string[] => {
  const outer: string[] = []
  let folder = root
  while (!existsSync(join(folder, ".git")) && dirname(folder) !== folder) {
    folder = dirname(folder)
    outer.push(join(folder, ".opencode"))
  }
  return existsSync(join(folder, ".git")) ? outer : []
}

/** All other folders from which OpenCode loads plugins for this project. */
const otherFolders = ({ root, home, environment }: Context): readonly string[] => {
  const configured = environment.OPENCODE_CONFIG_DIR
  const all = [
    join(environment.XDG_CONFIG_HOME || join(home, ".config"), "opencode"),
    join(home, ".opencode"),
    ...(configured ? [configured] : []),
    ...outerFolders(root),
  ]
  return [...new Set(all)].filter((folder) => folder !== join(root, ".opencode"))
}

export const copiesCheck: Check = {
  id: "copies",
  needsBundle: true,
  run: async (context) => {
    const found = await Promise.all(otherFolders(context).map(findBatonPlugins))
    const copies = found.flat()
    const folders = [...new Set(copies.map(dirname))]
    if (folders.length === 0) return [ok("no second copy of Baton that OpenCode would load")]
    return folders.map((folder) => {
      const names = copies.filter((path) => dirname(path) === folder).map((path) => basename(path))
      const fix =
        "Only one copy serves, the project's first; remove the plugins of the other one so that it is clear which."
      return warning(`a second copy of Baton is loaded as well: ${names.join(", ")} in ${folder}`, fix)
    })
  },
}
