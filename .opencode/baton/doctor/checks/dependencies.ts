import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { type Check, ok, warning } from "../finding.ts"

/** zod comes with it; see loadZod in host/schema.ts. */
const PACKAGE = join("@opencode-ai", "plugin", "package.json")

/** Where a module in `.opencode` would find the package: the nearest node_modules upwards that has it. */
const findPackage = (start: string): string | undefined => {
  let folder = start
  for (;;) {
    const path = join(folder, "node_modules", PACKAGE)
    if (existsSync(path)) return dirname(path)
    if (dirname(folder) === folder) return undefined
    folder = dirname(folder)
  }
}

export const dependenciesCheck: Check = {
  id: "dependencies",
  needsBundle: true,
  examine: async ({ root }) => {
    const found = findPackage(join(root, ".opencode"))
    if (found !== undefined) return [ok(`@opencode-ai/plugin is there (${found})`)]
    const fix = "OpenCode installs it at its first start in the project: start it once with the network on."
    return [warning("@opencode-ai/plugin is not installed in .opencode/node_modules yet", fix)]
  },
}
