import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import type { TestProject } from "../opencode/test-project.ts"

/** Where the probe puts what hands out tracked collections and timers. */
export const HELD = "baton.held"

/** What the bundle holds in OpenCode's process. */
export type Held = {
  /** Maps and sets that are still reachable, in the order of their making, which numbers them; `sessions` they know. */
  collections: { number: number; file: string; size: number; sessions: string[] }[]
  /** The file of each timer that waits. */
  timers: string[]
  /** Command lines of the process's children. */
  children: string[]
  openFiles: string[]
}

const sourceBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith(".ts") && statSync(path).isFile())

/** Before everything else in a file: the names are then the module's own. In another process they are what they were. */
const prelude = (file: string): string =>
  `const { Map, Set, setTimeout, setInterval, clearTimeout, clearInterval } = globalThis[${JSON.stringify(HELD)}]?.(${JSON.stringify(file)}) ?? globalThis\n`

/**
 * Rewrites the project's copy of the bundle so that each map, set and timer that it makes is seen, and has a probe load it.
 *
 * @returns what an OpenCode in that project tells about itself
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
