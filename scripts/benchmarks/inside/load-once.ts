/** `load-once.ts PLUGINS_FOLDER PROJECT`: prints how long import and init of the bundle took in this fresh process. */
// OpenCode has loaded these itself by the time it loads plugins.
import "node:child_process"
import "node:crypto"
import "node:fs/promises"
import "node:os"
import "node:stream"
import "node:url"
import { fakeInput } from "./fake-input.ts"
import { loadBundle } from "./load-bundle.ts"

const [folder = "", project = ""] = process.argv.slice(2)
const { ms, hooks } = await loadBundle(folder, fakeInput(project))
console.log(JSON.stringify({ ms, plugins: hooks.length }))
process.exit(0)
