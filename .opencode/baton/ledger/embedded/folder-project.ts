import { findProjectFolder, projectNameOf } from "../../host/git.ts"
import { SILENT } from "../../host/log.ts"
import { hasBundle, nearestProject } from "../../host/project.ts"
import { settingsOrDefaults } from "../../host/settings.ts"

/** The name that learnings of a folder are filed under, for commands without -p; "" for the root of the file system. */
export const findFolderProject = async (folder: string): Promise<string> => {
  const root = nearestProject(folder)
  const { learning } = await settingsOrDefaults(root, SILENT)
  return learning.project ?? projectNameOf(await findProjectFolder(root))
}

/** The same where the folder's project has Baton; "" elsewhere. */
export const findBatonProject = async (folder: string): Promise<string> =>
  hasBundle(nearestProject(folder)) ? findFolderProject(folder) : ""
