/**
 * Run as a child process of doctor for each plugin file: imports it as OpenCode would and prints its exports as one line of
 * JSON, `{"exports": {name: type}}` or `{"error": message}`. Calls nothing of the plugin.
 */
import * as nodeModule from "node:module"
import { pathToFileURL } from "node:url"

const [, , path = ""] = process.argv
const plugin = pathToFileURL(path).href

type Load = (url: string, context: object, next: (url: string, context: object) => unknown) => unknown

/**
 * Tells Node that the plugin is an ES module: Node follows the nearest package.json, and a project's may say "commonjs".
 * OpenCode adds one without a type to `.opencode` before it loads plugins, but a project that never ran it has none.
 */
const load: Load = (url, context, next) =>
  next(url, url === plugin && plugin.endsWith(".ts") ? { ...context, format: "module-typescript" } : context)

const { registerHooks } = nodeModule as { registerHooks?: (hooks: { load: Load }) => void }
if (!("Bun" in globalThis)) registerHooks?.({ load })

const inspect = async (): Promise<unknown> => {
  try {
    const module: Record<string, unknown> = await import(plugin)
    const exported = Object.entries(module).map(([name, value]) => [name, typeof value])
    return { exports: Object.fromEntries(exported) }
  } catch (error) {
    return { error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }
  }
}

process.stdout.write(`\n${JSON.stringify(await inspect())}\n`, () => process.exit(0))
