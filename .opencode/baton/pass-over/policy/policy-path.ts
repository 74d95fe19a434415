import { ownOrShared } from "../../host/project.ts"

/** Relative to the project's root. */
export const POLICY_FILE = ".opencode/pass-over.json"

/** The file of a project's policy. @param folder see ownOrShared */
export const policyPath = (projectRoot: string, folder?: string): string =>
  ownOrShared(projectRoot, POLICY_FILE, folder)
