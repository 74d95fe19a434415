import { existsSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { type Check, ok, type Subject, warning } from "../finding.ts"
import { findBatonPlugins } from "../plugin-files.ts"

/** `.opencode` of the folders above, up to the one that holds `.git`: OpenCode reads them all. */
const outerFolders = (root: string): readonly string[] => {
  const outer: string[] = []
  let folder = root
  while (!existsSync(join(folder, ".git")) && dirname(folder) !== folder) {
    folder = dirname(folder)
    outer.push(join(folder, ".opencode"))
  }
  return existsSync(join(folder, ".git")) ? outer : []
}

/** Every other folder from which OpenCode loads plugins for this project. */
const otherFolders = ({ root, home, environment }: Subject): readonly string[] => {
  const configured = environment.OPENCODE_CONFIG_DIR
  const all = [
    join(environment.XDG_CONFIG_HOME || join(home, ".config"), "opencode"),
    join(home, ".opencode"),
    ...(configured ? [configured] : []),
    ...outerFolders(root),
  ]
  return [...new Set(all)].filter((folder) => folder !== join(root, ".opencode"))
}

export const copiesCheck: Check = {
  id: "copies",
  needsBundle: true,
  examine: async (subject) => {
    const found = await Promise.all(otherFolders(subject).map(findBatonPlugins))
    const copies = found.flat()
    const folders = [...new Set(copies.map(dirname))]
    if (folders.length === 0) return [ok("no second copy of Baton that OpenCode would load")]
    return folders.map((folder) => {
      const names = copies.filter((path) => dirname(path) === folder).map((path) => basename(path))
      const fix =
        "Only one copy serves, the project's first; remove the plugins of the other one so that it is clear which."
      return warning(`a second copy of Baton is loaded as well: ${names.join(", ")} in ${folder}`, fix)
    })
  },
}
