import { ownOrShared } from "../../host/project.ts"

/** Relative to the project's root. In its own file, so that a start without the file loads nothing else. */
export const POLICY_FILE = ".opencode/pass-over.json"

/** The file of a project's policy. @param folder see ownOrShared */
export const policyPath = (projectRoot: string, folder?: string): string =>
  ownOrShared(projectRoot, POLICY_FILE, folder)
