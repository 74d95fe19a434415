import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
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

const isLoaded = (plugin: unknown): plugin is Plugin => typeof plugin === "function"

/**
 * Loads the bundle's plugins from HELD_PLUGINS with tracked objects and serves what they hold over HTTP; the address is in
 * HELD_ADDRESS. `/dispose` first calls the dispose hooks, which OpenCode does not do on every version.
 */
export const HeldProbe: Plugin = async (input) => {
  Object.assign(globalThis, { [HELD]: trackedFor })
  const folder = process.env.HELD_PLUGINS ?? ""
  const hooks: Hooks[] = []
  for (const file of readdirSync(folder).sort()) {
    const module: object = await import(join(folder, file))
    for (const plugin of Object.values(module).filter(isLoaded)) hooks.push(await plugin(input))
  }
  loaded.push(...hooks)
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // A collection may take longer than ten seconds, Bun's default timeout.
    idleTimeout: 0,
    fetch: async ({ url }) => {
      if (new URL(url).pathname === "/dispose") for (const { dispose } of loaded) await dispose?.()
      return Response.json(await look())
    },
  })
  server.unref()
  writeFileSync(process.env.HELD_ADDRESS ?? "", String(server.url))
  return mergeHooks(hooks)
}

/** Merges hooks: each hook of the result calls all of that name in turn, as OpenCode would. */
const mergeHooks = (all: readonly Hooks[]): Hooks => {
  const merged: Record<string, unknown> = {}
  for (const name of new Set(all.flatMap((hooks) => Object.keys(hooks)))) {
    if (name === "tool") continue
    merged[name] = async (...args: unknown[]): Promise<void> => {
      for (const hooks of all) {
        const hook: unknown = Reflect.get(hooks, name)
        if (typeof hook === "function") await hook.apply(hooks, args)
      }
    }
  }
  // A getter, so that no tools are created before OpenCode asks for them.
  Object.defineProperty(merged, "tool", {
    enumerable: true,
    get: () => Object.assign({}, ...all.map(({ tool }) => tool ?? {})),
  })
  return merged
}
