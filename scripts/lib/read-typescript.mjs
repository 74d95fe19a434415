// @ts-check
/**
 * Lets Node (22.18 or newer) read this package's TypeScript below a node_modules folder, where it refuses to. Bun reads it as it is.
 * Imported by the package's plugin entry (OpenCode Desktop runs on Node), and with `--import` by its command.
 */
import { readFileSync } from "node:fs"
import nodeModule from "node:module"
import { fileURLToPath } from "node:url"

const bundle = new URL("../../.opencode/", import.meta.url).href

/** @typedef {(url: string, context: object, next: (url: string, context: object) => unknown) => unknown} Load */
/** @typedef {{ registerHooks?: (hooks: { load: Load }) => void, stripTypeScriptTypes?: (code: string) => string }} Reader */

const { registerHooks, stripTypeScriptTypes } = /** @type {Reader} */ (nodeModule)

if (!process.versions.bun && registerHooks && stripTypeScriptTypes) {
  registerHooks({
    load: (url, context, next) => {
      if (!url.startsWith(bundle) || !url.endsWith(".ts")) return next(url, context)
      const source = stripTypeScriptTypes(readFileSync(fileURLToPath(url), "utf8"))
      return { format: "module", shortCircuit: true, source }
    },
  })
}
