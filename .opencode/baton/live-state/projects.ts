/** The projects of this account: a file each, outside of all projects, so that `baton waiting` finds what waits in any of them. */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describeError } from "../host/log.ts"
import { accountFolder, isFolder } from "../host/project.ts"
import { field, text } from "../host/schema.ts"
import { listFolder, readOwnTextSync } from "../host/untrusted.ts"
import type { ReportUnreadable } from "./observe/state-files.ts"

const ENDING = ".json"
const folderOf = (environment: NodeJS.ProcessEnv): string => join(accountFolder(environment), "projects")

/** Notes a project whose live state begins. @throws the file system's own error */
export const noteProject = (projectRoot: string, environment: NodeJS.ProcessEnv = process.env): void => {
  const folder = realpathSync(projectRoot)
  const path = join(folderOf(environment), `${createHash("sha256").update(folder).digest("hex")}${ENDING}`)
  if (existsSync(path)) return
  mkdirSync(folderOf(environment), { recursive: true, mode: 0o700 })
  writeFileSync(path, `${JSON.stringify({ folder })}\n`, { mode: 0o600 })
}

/** Returns the folders of the projects that are there; forgets the others. */
export const listProjects = (report: ReportUnreadable, environment: NodeJS.ProcessEnv = process.env): string[] => {
  const folder = folderOf(environment)
  const read = (name: string): string[] => {
    const path = join(folder, name)
    try {
      const project = text(field(JSON.parse(readOwnTextSync(path)), "folder"))
      if (project !== undefined && isFolder(project)) return [project]
      rmSync(path, { force: true })
    } catch (error) {
      report(`${path}: ${describeError(error)}`)
    }
    return []
  }
  try {
    return listFolder(folder)
      .filter((name) => name.endsWith(ENDING))
      .flatMap(read)
  } catch (error) {
    report(`${folder}: ${describeError(error)}`)
    return []
  }
}
