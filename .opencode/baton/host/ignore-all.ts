import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Makes git, and OpenCode's snapshots with it, ignore a folder that is there. @throws the file system's own error */
export const ignoreAll = (folder: string): void => {
  const file = join(folder, ".gitignore")
  if (!existsSync(file)) writeFileSync(file, "*\n")
}
