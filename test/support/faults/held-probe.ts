import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs"
import type { Hooks, Plugin } from "@opencode-ai/plugin"
import { HELD, type Held } from "./held.ts"

type Kept = { file: string; ref: WeakRef<Map<unknown, unknown> | Set<unknown>> }

const kept: Kept[] = []
const timers = new Map<unknown, string>()
const loaded: Hooks[] = []

/** Collections and timers for one file of the bundle, which is rewritten to use them. */
const trackedFor = (file: string) => {
  const remember = (made: Kept["ref"] extends WeakRef<infer Made extends object> ? Made : never): void => {
    kept.push({ file, ref: new WeakRef(made) })
  }
  return {
    Map: class<Key, Value> extends Map<Key, Value> {
      constructor(entries?: Iterable<readonly [Key, Value]> | null) {
        super(entries ?? [])
        remember(this)
      }
    },
    Set: class<Value> extends Set<Value> {
      constructor(values?: Iterable<Value> | null) {
        super(values ?? [])
        remember(this)
      }
    },
    setTimeout: (callback: () => void, ms?: number) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        callback()
      }, ms)
      timers.set(timer, file)
      return timer
    },
    setInterval: (callback: () => void, ms?: number) => {
      const timer = setInterval(callback, ms)
      timers.set(timer, file)
      return timer
    },
    clearTimeout: (timer: NodeJS.Timeout | undefined) => {
      timers.delete(timer)
      clearTimeout(timer)
    },
    clearInterval: (timer: NodeJS.Timeout | undefined) => {
      timers.delete(timer)
      clearInterval(timer)
    },
  }
}

const textsOf = (held: Map<unknown, unknown> | Set<unknown>): string =>
  Bun.inspect(held instanceof Map ? [...held.entries()] : [...held], { depth: 3 })

const children = (): string[] =>
  readdirSync("/proc/self/task")
    .flatMap((thread) => readFileSync(`/proc/self/task/${thread}/children`, "utf8").split(" ").filter(Boolean))
    .map((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " "))

const openFiles = (): string[] =>
  readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      // Closed between listing and reading.
      return []
    }
  })

const look = async (): Promise<Held> => {
  // Objects released in one turn of the event loop are collected in the next.
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    Bun.gc(true)
  }
  const collections = kept.flatMap(({ file, ref }, number) => {
    const held = ref.deref()
    if (!held) return []
    return [{ number, file, size: held.size, sessions: [...new Set(textsOf(held).match(/ses_\w+/g) ?? [])] }]
  })
  return { collections, timers: [...timers.values()], children: children(), openFiles: openFiles() }
}

Object.assign(globalThis, { [HELD]: trackedFor })

/** Serves what the plugins hold over HTTP, the address is in HELD_ADDRESS; `/dispose` first calls their dispose hooks. */
const serve = (): void => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // A collection may take longer than ten seconds, Bun's default timeout.
    idleTimeout: 0,
    fetch: async ({ url }) => {
      // OpenCode does not do so on every version.
      if (new URL(url).pathname === "/dispose") for (const { dispose } of loaded) await dispose?.()
      return Response.json(await look())
    },
  })
  server.unref()
  writeFileSync(process.env.HELD_ADDRESS ?? "", String(server.url))
}

/** The plugin, whose hooks are known to the probe from then on. */
export const watched =
  (plugin: Plugin): Plugin =>
  async (input) => {
    const hooks = await plugin(input)
    if (loaded.length === 0) serve()
    loaded.push(hooks)
    return hooks
  }
