import { existsSync, lstatSync, readdirSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, isAbsolute, join } from "node:path"

export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** The folder of this copy of the bundle: `<somewhere>/baton`. */
export const bundleRoot: string = dirname(import.meta.dirname)

const SETTINGS_FOLDER = ".opencode"
const BUNDLE = join(SETTINGS_FOLDER, "baton")

/** OpenCode's switches against what a project brings. */
const SWITCHES = ["OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_PURE"]

/** @returns the variable that tells OpenCode, and Baton, to leave the project's own configuration alone */
export const projectConfigSwitch = (environment: NodeJS.ProcessEnv = process.env): string | undefined =>
  SWITCHES.find((name) => /^(?:1|true)$/i.test(environment[name] ?? ""))

type Search = {
  /** The last folder to look in. */
  readonly top: string
  /** The home folder: a bundle there serves all projects of the user and is no project itself. */
  readonly home: string
}

/** A project without a copy of its own is served by a global one or the npm package. */
export const hasBundle = (projectRoot: string): boolean => existsSync(join(projectRoot, BUNDLE))

/**
 * The file of a project's settings: its own, or the one beside the copy of the bundle that serves a project without a copy. A
 * link that leads nowhere is the project's, too, and no reason to take another file.
 *
 * @param path below `.opencode`, relative to the project
 * @param folder that holds the copy's `baton`
 */
export const ownOrShared = (projectRoot: string, path: string, folder = dirname(bundleRoot)): string => {
  const own = join(projectRoot, path)
  const shared = join(folder, basename(path))
  if (projectConfigSwitch() !== undefined) return shared
  if (hasBundle(projectRoot) || lstatSync(own, { throwIfNoEntry: false }) !== undefined) return own
  return existsSync(shared) ? shared : own
}

const nearestWith = (mark: string, start: string, { top, home }: Search): string | undefined => {
  for (let folder = start; ; folder = dirname(folder)) {
    const isProject = folder === start || folder !== home
    if (isProject && existsSync(join(folder, mark))) return folder
    if (folder === top || dirname(folder) === folder) return undefined
  }
}

/**
 * Finds the project of an OpenCode directory: the nearest folder up to the worktree that has the bundle, since OpenCode loads
 * every `.opencode` on that way. Without one, as with a global copy, the nearest folder that has `.opencode`.
 *
 * @param worktree OpenCode's; "/" outside git
 */
export const findProjectRoot = (directory: string, worktree: string, home = homedir()): string => {
  const search = { top: worktree, home }
  const bundled = nearestWith(BUNDLE, directory, search)
  if (bundled !== undefined) return bundled
  return worktree === "/" ? directory : (nearestWith(SETTINGS_FOLDER, directory, search) ?? directory)
}

/** Finds the project of a folder, also from a sub-folder; else the folder itself. Agrees with `findProjectRoot`. */
export const nearestProject = (start: string, home = homedir()): string => {
  const search = { top: "/", home }
  return nearestWith(BUNDLE, start, search) ?? nearestWith(SETTINGS_FOLDER, start, search) ?? start
}

/** The folder of what Baton keeps in a project at run time. */
export const stateRoot = (projectRoot: string): string => join(projectRoot, ".opencode", "state")

/** Folder of what Baton keeps for this account outside of all projects. */
export const accountFolder = (environment: NodeJS.ProcessEnv = process.env): string => {
  const { XDG_STATE_HOME: base = "", HOME: home = homedir() } = environment
  return join(isAbsolute(base) ? base : join(home, ".local", "state"), "baton")
}

/** OpenCode's own settings, from which it takes rules, plugins and programs to run. */
export const SETTINGS_FILES = ["opencode.json", "opencode.jsonc"]

export const OUTBOX_FOLDER = "outbox"
export const HANDOFFS_FOLDER = "handoffs"
export const RECORD_ENDING = ".json"

/** True where an earlier process may have left records to deliver. */
export const hasPendingRecords = (projectRoot: string): boolean => {
  const folder = join(stateRoot(projectRoot), OUTBOX_FOLDER)
  try {
    return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith(RECORD_ENDING))
  } catch {
    // The outbox reports why its folder cannot be read.
    return true
  }
}
