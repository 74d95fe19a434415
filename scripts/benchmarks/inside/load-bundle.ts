import { readdirSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, Plugin, PluginInput } from "@opencode-ai/plugin"

const isPlugin = (value: unknown): value is Plugin => typeof value === "function"

/**
 * Imports and initialises every plugin of a folder, one after the other, as OpenCode does.
 *
 * @param folder absolute path
 * @returns milliseconds from before the first import to after the last init, and the hooks
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
