import { mkdirSync, mkdtempSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { REPOSITORY } from "../opencode/opencode-binary.ts"
import { copyBundle } from "../opencode/test-project.ts"
import { removeFolder } from "./remove-folder.ts"
import { temporaryFolder } from "./temporary-folder.ts"

/**
 * Copies the bundle once for the calling file or `describe`.
 *
 * @returns creates a project for one test, with links to the bundle
 */
export const shareBundle = (): (() => string) => {
  let bundle: string
  beforeAll(() => {
    bundle = mkdtempSync(join(tmpdir(), "baton-bundle-"))
    copyBundle(bundle, undefined)
    symlinkSync(join(REPOSITORY, "node_modules"), join(bundle, "node_modules"))
  })
  afterAll(() => removeFolder(bundle))
  return () => {
    const project = temporaryFolder()
    mkdirSync(join(project, ".opencode"))
    symlinkSync(join(bundle, "baton"), join(project, ".opencode", "baton"))
    return project
  }
}
