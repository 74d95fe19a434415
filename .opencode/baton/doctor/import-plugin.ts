/**
 * Run as a child of doctor, one for each plugin file: imports it as OpenCode would and prints what it exports as one line
 * of JSON, `{"exports": {name: type}}` or `{"error": message}`. Nothing of the plugin is called.
 */
import * as nodeModule from "node:module"
import { pathToFileURL } from "node:url"

const [, , path = ""] = process.argv
const plugin = pathToFileURL(path).href

type Load = (url: string, context: object, next: (url: string, context: object) => unknown) => unknown

/**
 * Node takes the nearest package.json's word for what a `.ts` file is, and a project's may say "commonjs". OpenCode puts
 * one without that word into `.opencode` before it loads plugins; a project where it never ran has none yet.
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
