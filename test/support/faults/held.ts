import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
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

/** First line of each file: its names shadow the globals of the module. In other processes they are the plain globals. */
const prelude = (file: string): string =>
  `const { Map, Set, setTimeout, setInterval, clearTimeout, clearInterval } = globalThis[${JSON.stringify(HELD)}]?.(${JSON.stringify(file)}) ?? globalThis\n`

/**
 * Rewrites the project's copy of the bundle so that its maps, sets and timers are tracked, and loads it by a probe.
 *
 * @returns requests to an OpenCode in that project about the objects it holds
 */
export const watchHeld = (project: TestProject) => {
  const { directory, home } = project
  const openCode = join(directory, ".opencode")
  const baton = join(openCode, "baton")
  for (const file of readdirSync(baton, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts")))
    writeFileSync(join(baton, file), `${prelude(file)}${readFileSync(join(baton, file), "utf8")}`)
  const plugins = join(openCode, "held-plugins")
  renameSync(join(openCode, "plugins"), plugins)
  const probe = JSON.stringify(join(import.meta.dirname, "held-probe.ts"))
  // The probe is loaded before the plugin.
  for (const name of readdirSync(plugins))
    project.write(
      `.opencode/plugins/${name}`,
      `import { watched } from ${probe}\nimport * as plugin from "../held-plugins/${name}"\n` +
        "export const Watched = watched(Object.values(plugin)[0])\n",
    )
  const address = join(home, "held-address")
  const ask = async (path: string): Promise<Held> =>
    (await (await fetch(new URL(path, readFileSync(address, "utf8")))).json()) as Held
  return {
    environment: { HELD_ADDRESS: address },
    look: () => ask("/"),
    dispose: () => ask("/dispose"),
  }
}
