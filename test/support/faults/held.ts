import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import type { TestProject } from "../opencode/test-project.ts"

/** The global under which the probe offers tracked collections and timers. */
export const HELD = "baton.held"

/** Objects of the bundle in OpenCode's process. */
export type Held = {
  /** Maps and sets that are still reachable, numbered in order of creation; `sessions` are the ids in them. */
  collections: { number: number; file: string; size: number; sessions: string[] }[]
  /** The source file of each pending timer. */
  timers: string[]
  /** Command lines of the child processes. */
  children: string[]
  openFiles: string[]
}

const sourceBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith(".ts") && statSync(path).isFile())

/** First line of each file: its names shadow the globals of the module. In other processes they are the plain globals. */
const prelude = (file: string): string =>
  `const { Map, Set, setTimeout, setInterval, clearTimeout, clearInterval } = globalThis[${JSON.stringify(HELD)}]?.(${JSON.stringify(file)}) ?? globalThis\n`

/**
 * Rewrites the project's copy of the bundle so that its maps, sets and timers are tracked, and loads it by a probe.
 *
 * @returns requests to an OpenCode in that project about the objects it holds
 */
export const watchHeld = ({ directory, home }: TestProject) => {
  const openCode = join(directory, ".opencode")
  const baton = join(openCode, "baton")
  for (const path of sourceBelow(baton))
    writeFileSync(path, `${prelude(relative(baton, path))}${readFileSync(path, "utf8")}`)
  const plugins = join(openCode, "held-plugins")
  renameSync(join(openCode, "plugins"), plugins)
  mkdirSync(join(openCode, "plugins"))
  const probe = join(import.meta.dirname, "held-probe.ts")
  writeFileSync(join(openCode, "plugins", "probe.ts"), `export * from ${JSON.stringify(probe)}\n`)
  const address = join(home, "held-address")
  const ask = async (path: string): Promise<Held> =>
    (await (await fetch(new URL(path, readFileSync(address, "utf8")))).json()) as Held
  return {
    environment: { HELD_PLUGINS: plugins, HELD_ADDRESS: address },
    look: () => ask("/"),
    dispose: () => ask("/dispose"),
  }
}
