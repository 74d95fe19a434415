import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, Plugin } from "@opencode-ai/plugin"
import type { Sample } from "../soak/sample.ts"
import { countBundleTimers } from "./bundle-timers.ts"

const COMPACTING = "experimental.session.compacting"
/** Promises settle and finalizers run between the two collections. */
const SETTLE_MS = 50

type Probe = { bundle: Hooks[]; hookMs: number[]; countTimers: () => number }

const PROBE = Symbol.for("baton.bench-soak")

/** Linux alone. */
const countChildren = (): number =>
  readdirSync("/proc/self/task").flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, "utf8").split(" ").filter(Boolean),
  ).length

/** What the open descriptors are: `socket`, `pipe`, `anon_inode` or `file`; one that is closed meanwhile is left out. */
const descriptors = (): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const name of readdirSync("/proc/self/fd")) {
    let target: string
    try {
      target = readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      continue
    }
    const kind = /^(\w+):/.exec(target)?.[1] ?? "file"
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

const takeSample = async (probe: Probe): Promise<Sample> => {
  const { heapStats } = await import("bun:jsc")
  Bun.gc(true)
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  Bun.gc(true)
  const { heapSize, objectTypeCounts } = heapStats()
  return {
    heapBytes: heapSize,
    residentBytes: process.memoryUsage.rss(),
    descriptors: descriptors(),
    children: countChildren(),
    timers: probe.countTimers(),
    collections: (objectTypeCounts.Map ?? 0) + (objectTypeCounts.Set ?? 0),
    hookMs: probe.hookMs.splice(0),
  }
}

const serve = (probe: Probe, file: string): void => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // A collection may take longer than the ten seconds after which Bun hangs up.
    idleTimeout: 0,
    fetch: async ({ url }) => {
      if (new URL(url).pathname === "/dispose") for (const hooks of probe.bundle.splice(0)) await hooks.dispose?.()
      return Response.json(await takeSample(probe))
    },
  })
  server.unref()
  writeFileSync(file, server.url.href)
}

/** One of a process, whatever the number of directories; it answers over HTTP at the address it writes to BATON_BENCH_FILE. */
const theProbe = (): Probe => {
  const holder: typeof globalThis & { [PROBE]?: Probe } = globalThis
  if (!holder[PROBE]) {
    holder[PROBE] = { bundle: [], hookMs: [], countTimers: countBundleTimers() }
    serve(holder[PROBE], process.env.BATON_BENCH_FILE ?? "")
  }
  return holder[PROBE]
}

/** The bundle's own plugin from BATON_BENCH_PLUGINS, its compacting hook timed; nothing where that is not set. */
const own =
  (file: string): Plugin =>
  async (input) => {
    const probe = theProbe()
    const folder = process.env.BATON_BENCH_PLUGINS
    if (!folder) return {}
    const [create] = Object.values((await import(join(folder, file))) as Record<string, Plugin>)
    const hooks = (await create?.(input)) ?? {}
    const compacting = file === "compaction-handoff.ts" ? hooks[COMPACTING] : undefined
    // In place, since a copy would ask for the tools at once.
    if (compacting)
      hooks[COMPACTING] = async (request, output) => {
        const started = performance.now()
        await compacting(request, output)
        probe.hookMs.push(performance.now() - started)
      }
    probe.bundle.push(hooks)
    return hooks
  }

export const Compaction: Plugin = own("compaction-handoff.ts")
export const Handoff: Plugin = own("handoff.ts")
export const LiveState: Plugin = own("live-state.ts")
export const PassOver: Plugin = own("pass-over.ts")
export const Learning: Plugin = own("session-learning.ts")
