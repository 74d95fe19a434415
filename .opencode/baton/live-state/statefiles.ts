import { readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { isObject } from "./merge.ts"
import { isAlive } from "./statefile.ts"

/** A statefile as somebody who watches sees it. */
export type FoundState = {
  readonly file: string
  /** Of the envelope, ISO 8601. */
  readonly ts: string
  readonly state: { readonly [key: string]: unknown }
  /** Whether the process that it tells of is still there. */
  readonly alive: boolean
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "")

/** One statefile; undefined when it is gone, half a file of somebody else, or not one of ours. */
export const readState = async (folder: string, file: string): Promise<FoundState | undefined> => {
  try {
    const envelope: unknown = JSON.parse(await readFile(join(folder, file), "utf8"))
    if (!isObject(envelope) || !isObject(envelope.state) || typeof envelope.ts !== "string") return undefined
    const { opencode_pid: pid } = envelope.state
    return { file, ts: envelope.ts, state: envelope.state, alive: typeof pid === "number" && isAlive(pid) }
  } catch (error) {
    // Pruned meanwhile, or not one of ours.
    if (codeOf(error) === "ENOENT" || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Every readable statefile of a folder, the newest last. A folder that is not there holds none. */
export const listStates = async (folder: string): Promise<FoundState[]> => {
  let names: string[]
  try {
    names = await readdir(folder)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return []
    throw error
  }
  const states = await Promise.all(
    names.filter((name) => name.endsWith(".json")).map((name) => readState(folder, name)),
  )
  return states.filter((found) => found !== undefined).sort((a, b) => (a.ts < b.ts ? -1 : 1))
}

/** Removes the statefiles of processes that are gone. @returns their names */
export const pruneStates = async (folder: string): Promise<string[]> => {
  const gone = (await listStates(folder)).filter(({ alive }) => !alive)
  for (const { file } of gone) {
    await rm(join(folder, file), { force: true })
    await rm(join(folder, file.replace(/\.json$/, ".owner")), { force: true })
  }
  return gone.map(({ file }) => file)
}

const at = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>((found, key) => (isObject(found) ? found[key] : undefined), value)

const stateOf = (state: unknown): string => {
  const focus = at(state, "tui_focus", "ty")
  if (focus === "permission") return `waits for permission: ${String(at(state, "tui_focus", "details", "title"))}`
  if (at(state, "pendingQuestion", "text") !== undefined) return `asks: ${String(at(state, "pendingQuestion", "text"))}`
  const isIdle = at(state, "agent", "is_idle")
  return isIdle === true ? "idle" : isIdle === false ? "busy" : "started"
}

/** One agent in one line: alive or gone, what it does, its session, its task. */
export const renderState = ({ ts, state, alive }: FoundState): string =>
  [
    alive ? "alive" : "gone ",
    ts.slice(0, 19).replace("T", " "),
    String(state.c2c_session_id),
    typeof state.root_opencode_session_id === "string" ? state.root_opencode_session_id : "no session",
    ...(typeof at(state, "extensions", "task", "id") === "string"
      ? [String(at(state, "extensions", "task", "id"))]
      : []),
    alive ? stateOf(state) : "",
  ]
    .join("  ")
    .trimEnd()
