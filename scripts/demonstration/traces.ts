import { type Dirent, readdirSync, readFileSync, statSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"

/** Larger files are databases and downloads of other programs; reading them would take longer than the demo. */
const MAX_BYTES = 64 * 1024 * 1024

const SKIPPED: ReadonlySet<string> = new Set(["node_modules", ".git", ".cache"])

export type Place = { path: string; isDeep: boolean }

/** Where OpenCode, prog and the bundle would write if they were not kept in. */
export const placesToLookAt = (repository: string, environment: Record<string, string | undefined>): Place[] => {
  const home = homedir()
  const xdg = (name: string, fallback: string) => join(environment[name] ?? join(home, fallback), "opencode")
  const whole = [
    repository,
    join(home, ".prog"),
    join(home, ".opencode"),
    xdg("XDG_CONFIG_HOME", ".config"),
    xdg("XDG_DATA_HOME", ".local/share"),
    xdg("XDG_STATE_HOME", ".local/state"),
    xdg("XDG_CACHE_HOME", ".cache"),
  ]
  return [{ path: tmpdir(), isDeep: false }, ...whole.map((path) => ({ path, isDeep: true }))]
}

const isGone = (error: unknown): boolean =>
  error instanceof Error && "code" in error && ["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes(String(error.code))

const orIfGone = <T>(read: () => T, fallback: T): T => {
  try {
    return read()
  } catch (error) {
    if (isGone(error)) return fallback
    throw error
  }
}

/**
 * Files outside the demo's folder that were written since it began and name that folder.
 *
 * Other programs may write in the same places at the same time; what this run leaves names its folder.
 *
 * @param since milliseconds of the epoch
 */
export const findTraces = (places: readonly Place[], root: string, since: number): string[] => {
  const found: string[] = []
  const look = (folder: string, isDeep: boolean): void => {
    const entries = orIfGone<Dirent[]>(() => readdirSync(folder, { withFileTypes: true }), [])
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (path === root || SKIPPED.has(entry.name)) continue
      if (entry.isDirectory() && isDeep) look(path, isDeep)
      if (!entry.isFile()) continue
      const stats = orIfGone(() => statSync(path), undefined)
      if (!stats || stats.mtimeMs < since || stats.size > MAX_BYTES) continue
      if (orIfGone(() => readFileSync(path), Buffer.alloc(0)).includes(root)) found.push(path)
    }
  }
  for (const { path, isDeep } of places) look(path, isDeep)
  return found
}
