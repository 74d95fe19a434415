// node find.mjs FOLDER: prints the path of OpenCode in FOLDER (a node_modules folder) when all that the demo needs is
// there in its version; exits 1 when it is not, 2 when there is no OpenCode for this machine at all.
// npm writes .package-lock.json last, so a half-finished installation does not count.
import { readFileSync } from "node:fs"
import { join } from "node:path"

const folder = process.argv[2]
const wanted = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"))
const opencode = `opencode-newest-${process.platform}-${process.arch}`
if (!wanted.optionalDependencies[opencode]) {
  console.error(`error: the demo knows no OpenCode for ${process.platform}-${process.arch}`)
  process.exit(2)
}

let installed = {}
try {
  installed = JSON.parse(readFileSync(join(folder, ".package-lock.json"), "utf8")).packages
} catch (error) {
  if (error.code !== "ENOENT") throw error
}
const needed = { ...wanted.dependencies, [opencode]: wanted.optionalDependencies[opencode] }
const isThere = ([name, range]) =>
  installed[`node_modules/${name}`]?.version === range.slice(range.lastIndexOf("@") + 1)
if (!Object.entries(needed).every(isThere)) process.exit(1)
console.log(join(folder, opencode, "bin", "opencode"))
