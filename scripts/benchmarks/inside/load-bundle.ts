import { readdirSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, Plugin, PluginInput } from "@opencode-ai/plugin"

const isPlugin = (value: unknown): value is Plugin => typeof value === "function"

/**
 * Loads every plugin of a folder, one after the other.
 *
 * @returns ms from the first import to the last init, and the hooks
 */
export const loadBundle = async (folder: string, input: PluginInput): Promise<{ ms: number; hooks: Hooks[] }> => {
  const files = readdirSync(folder).sort()
  const hooks: Hooks[] = []
  const started = performance.now()
  for (const file of files) {
    const module: object = await import(join(folder, file))
    for (const plugin of Object.values(module).filter(isPlugin)) hooks.push(await plugin(input))
  }
  return { ms: performance.now() - started, hooks }
}

/** A plugin's input with a client that answers at once with empty data; the real client needs a server. */
export const fakeInput = (directory: string): PluginInput => {
  const answer = async () => ({ data: undefined })
  const group = new Proxy({}, { get: () => answer })
  const client = new Proxy({}, { get: () => group })
  const project = { id: "bench", worktree: directory, time: { created: 0 } }
  const input = { client, project, directory, worktree: directory, serverUrl: new URL("http://127.0.0.1"), $: Bun.$ }
  return input as unknown as PluginInput
}
