/**
 * Run as a child of doctor, one for each plugin file: imports it as OpenCode would and prints what it exports as one line
 * of JSON, `{"exports": {name: type}}` or `{"error": message}`. Nothing of the plugin is called.
 */
import { pathToFileURL } from "node:url"

const [, , path = ""] = process.argv

const inspect = async (): Promise<unknown> => {
  try {
    const module: Record<string, unknown> = await import(pathToFileURL(path).href)
    const exported = Object.entries(module).map(([name, value]) => [name, typeof value])
    return { exports: Object.fromEntries(exported) }
  } catch (error) {
    return { error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }
  }
}

process.stdout.write(`\n${JSON.stringify(await inspect())}\n`, () => process.exit(0))
