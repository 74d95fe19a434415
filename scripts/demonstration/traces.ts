import { readdirSync, readFileSync, statSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { errorCode } from "../../.opencode/baton/host/log.ts"

/** Larger files are databases and downloads of other programs; reading them would take longer than the demo. */
const MAX_BYTES = 64 * 1024 * 1024

const SKIPPED: ReadonlySet<string> = new Set(["node_modules", ".git", ".cache"])

export type Folder = { path: string; isDeep: boolean }

/** Folders in which OpenCode, prog and the bundle would write without isolation. */
export const foldersToSearch = (repository: string, environment: Record<string, string | undefined>): Folder[] => {
  const home = homedir()
  const fallbacks = { CONFIG: ".config", DATA: ".local/share", STATE: ".local/state", CACHE: ".cache" }
  const xdg = Object.entries(fallbacks).map(([name, fallback]) =>
    join(environment[`XDG_${name}_HOME`] ?? join(home, fallback), "opencode"),
  )
  const whole = [repository, join(home, ".prog"), join(home, ".opencode"), ...xdg]
  return [{ path: tmpdir(), isDeep: false }, ...whole.map((path) => ({ path, isDeep: true }))]
}

const unlessGone = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes(errorCode(error) ?? "")) return undefined
    throw error
  }
}

/**
 * Files outside the demo's folder that were written since its start and name that folder. Other programs may write in the same
 * folders at the same time; only files of this run name the demo's folder.
 *
 * @param since milliseconds of the epoch
 */
export const findTraces = (folders: readonly Folder[], root: string, since: number): string[] =>
  folders.flatMap(({ path: folder, isDeep }) =>
    (unlessGone(() => readdirSync(folder, { withFileTypes: true })) ?? []).flatMap((entry) => {
      const path = join(folder, entry.name)
      if (path === root || SKIPPED.has(entry.name)) return []
      if (entry.isDirectory()) return isDeep ? findTraces([{ path, isDeep }], root, since) : []
      const stats = entry.isFile() ? unlessGone(() => statSync(path)) : undefined
      if (!stats || stats.mtimeMs < since || stats.size > MAX_BYTES) return []
      return unlessGone(() => readFileSync(path))?.includes(root) ? [path] : []
    }),
  )
